#!/usr/bin/perl
# Cases of set Z for Perl: argv = name seconds folder [fixed].
use strict;
use warnings;
use Time::HiRes qw(time sleep);
use IO::Socket::UNIX;
use IO::Select;
use Storable qw(dclone);
use Errno qw(EAGAIN EWOULDBLOCK);

my ($name, $seconds, $folder, $form) = @ARGV;
my $fixed = ($form // '') eq 'fixed';
my $end = time + $seconds;
$| = 1;

sub running { return time < $end }

sub report {
    my ($done, $what) = @_;
    printf "%s: %d %s in %s s%s\n", $name, $done, $what, $seconds, $fixed ? ' (fixed)' : '';
}

# ---- word-index: places of the words of a text

sub build_text {
    my @words = ("na\x{ef}ve", "\x{153}uvre", 'plain', "stra\x{df}e", 'word', "\x{43c}\x{438}\x{440}", 'index');
    my $text = '';
    $text .= $words[ $_ % @words ] . ($_ % 11 ? ' ' : "\n") for 1 .. 12000;
    return $text;
}

sub count_words {
    my ($string) = @_;
    my $count = 0;
    my $sum = 0;
    while ($string =~ /\w+/g) {
        $sum += $+[0] - $-[0];
        $count++;
        last if $count % 200 == 0 && !running();
    }
    return $count;
}

sub count_words_by_line {
    my ($string) = @_;
    my $count = 0;
    my $sum = 0;
    for my $line (split /\n/, $string) {
        while ($line =~ /(\w+)/g) {
            $sum += length $1;
            $count++;
        }
    }
    return $count;
}

sub word_index {
    my $text = build_text();
    my $done = 0;
    $done += $fixed ? count_words_by_line($text) : count_words($text) while running();
    report($done, 'words');
}

# ---- audit-simplify: one line for each event of the audit daemon

my $logfile = "$folder/audit-simple.log";
my $keep;

sub write_event {
    my ($event) = @_;
    if ($fixed) {
        if (!$keep) {
            open($keep, '>>', $logfile) or die $!;
            $keep->autoflush(1);
        }
        print $keep "$event\n";
        return;
    }
    open(my $log, '>>', $logfile) or die $!;
    print $log "$event\n";
    close($log);
}

sub simplify {
    my ($serial) = @_;
    my %field = (type => 'SYSCALL', success => 'yes', exe => '/usr/bin/id', uid => 1000);
    return join ' ', "serial=$serial", map { "$_=$field{$_}" } sort keys %field;
}

sub audit_simplify {
    my $done = 0;
    while (running()) {
        write_event(simplify($done));
        $done++;
        truncate($logfile, 0) if $done % 200000 == 0;
    }
    report($done, 'events');
}

# ---- zone-check: a tester of domains with a profile of levels

package Zone::Profile {
    my %data = (
        resolver    => { defaults => { retry => 2, timeout => 5 } },
        test_levels => {
            map { my $m = $_; ($m => { map { ("TAG_${m}_$_" => (qw(INFO NOTICE WARNING ERROR))[ $_ % 4 ]) } 1 .. 60 }) }
                qw(BASIC ADDRESS CONNECTIVITY DELEGATION DNSSEC NAMESERVER SYNTAX ZONE)
        },
    );

    sub get {
        my ($class, $property) = @_;
        my $value = $data{$property};
        return ref $value ? Storable::dclone($value) : $value;
    }
}

package Zone::Logger::Entry {
    my $levels;

    sub new {
        my ($class, %args) = @_;
        return bless {%args}, $class;
    }

    sub level {
        my ($self) = @_;
        my $table = $fixed ? ($levels //= Zone::Profile->get('test_levels')) : Zone::Profile->get('test_levels');
        return $table->{ $self->{module} }{ $self->{tag} } // 'DEBUG';
    }
}

package main;

sub zone_check {
    my $done = 0;
    my %seen;
    my @modules = qw(BASIC ADDRESS CONNECTIVITY DELEGATION DNSSEC NAMESERVER SYNTAX ZONE);
    while (running()) {
        my $module = $modules[ $done % @modules ];
        my $entry = Zone::Logger::Entry->new(module => $module, tag => "TAG_${module}_" . ($done % 60 + 1));
        $seen{ $entry->level }++;
        $done++;
    }
    report($done, 'entries');
}

# ---- serial-console: waits for a text on the terminal of a virtual machine

sub vm_serial {
    my $path = "$folder/serial.sock";
    my $server = IO::Socket::UNIX->new(Local => $path, Listen => 5) or die $!;
    print "ready\n";
    my $select = IO::Select->new($server);
    my @clients;
    $SIG{PIPE} = 'IGNORE';
    my $n = 0;
    while (running()) {
        if ($select->can_read(0.5)) {
            my $client = $server->accept;
            push @clients, $client if $client;
        }
        $n++;
        syswrite $_, "[ $n.000000] systemd: started unit $n\n" for @clients;
    }
}

sub do_read {
    my ($socket, $buffer) = @_;
    my $got = sysread $socket, $$buffer, 4096, length $$buffer;
    return $got if defined $got;
    return 0 if $! == EAGAIN || $! == EWOULDBLOCK;
    die "read: $!";
}

sub read_until {
    my ($socket, $pattern) = @_;
    my $buffer = '';
    my $reads = 0;
    my $select = IO::Select->new($socket);
    while (running()) {
        if ($fixed) {
            my $left = $end - time;
            next if $left > 0 && !$select->can_read($left);
        }
        do_read($socket, \$buffer);
        $reads++;
        last if $buffer =~ $pattern;
        $buffer = substr $buffer, -200 if length $buffer > 4000;
    }
    return $reads;
}

sub serial_console {
    my $socket = IO::Socket::UNIX->new(Peer => "$folder/serial.sock") or die $!;
    $socket->blocking(0);
    my $reads = read_until($socket, qr/login:/);
    my @used = times;
    report($reads, sprintf 'reads, %.2f s of processor', $used[0] + $used[1]);
}

{
    no strict 'refs';
    (my $sub = $name) =~ tr/-/_/;
    &{"main::$sub"}();
}
