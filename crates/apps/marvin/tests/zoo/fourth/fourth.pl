#!/usr/bin/perl
# Programs written from public reports: fourth.pl NAME SECONDS DIR [fixed]
use strict;
use warnings;
use Time::HiRes qw(time sleep);
use IO::Socket::UNIX;
use Socket;

my ($NAME, $SECONDS, $DIR, $MORE) = @ARGV;
my $FIXED = defined $MORE && $MORE eq 'fixed';
my $END = time + $SECONDS;

sub running { return time < $END }

sub report {
    my ($label, $count) = @_;
    printf "%s: %d %s in %.1f s\n", $NAME, $count, $label, $SECONDS;
}

# ---------------------------------------------------------------- W19
package Grammar::Parser {
    sub new {
        my ($class, $rules) = @_;
        return bless { rules => $rules, farthest => 0 }, $class;
    }

    sub match_rgx {
        my ($self, $regexp) = @_;
        if ($FIXED) {
            pos($self->{buffer}) = $self->{position};
            $self->{buffer} =~ /\G$regexp/gc or return 0;
            $self->{position} = pos($self->{buffer});
            return 1;
        }
        my $rest = substr($self->{buffer}, $self->{position});
        $rest =~ /^$regexp/ or return 0;
        $self->{position} += $+[0];
        return 1;
    }

    sub match_any {
        my ($self, @names) = @_;
        for my $name (@names) {
            return $name if $self->match_rgx($self->{rules}{$name});
        }
        return;
    }

    sub parse {
        my ($self, $input) = @_;
        $self->{buffer} = $input;
        $self->{position} = 0;
        my $tokens = 0;
        my $length = length $input;
        while ($self->{position} < $length && main::running()) {
            $self->match_any(qw(space comment word number mark)) or die "no rule at $self->{position}";
            $tokens++;
        }
        return $tokens;
    }
}

sub grammar_parser {
    my $text = join '', map { "r\x{e4}gel_$_ = wort $_ ( \x{20ac} ) # Anmerkung\n" } 1 .. 2500;
    my $parser = Grammar::Parser->new({
        space   => qr/\s+/,
        comment => qr/#[^\n]*/,
        word    => qr/[^\W\d]\w*/,
        number  => qr/\d+/,
        mark    => qr/[^\w\s]/,
    });
    my $tokens = 0;
    while (running()) { $tokens += $parser->parse($text) }
    report('tokens', $tokens);
}

# ---------------------------------------------------------------- W20
sub test_results {
    my @entries;
    for my $i (1 .. 300) {
        push @entries, {
            module => 'CONSISTENCY', testcase => "consistency0$i", tag => 'MULTIPLE_SOA', level => 'NOTICE',
            timestamp => 1491553200 + $i / 7,
            args => { ns => "ns$i.example.org", address => "192.0.2.$i", serials => [ map { 2017040700 + $_ } 1 .. 5 ], asn => $i },
        };
    }
    return { zone => 'afnic.example', results => \@entries };
}

sub result_export {
    require JSON::PP;
    require Storable;
    my $results = test_results();
    my $json = JSON::PP->new->canonical(0)->utf8;
    my ($done, $bytes) = (0, 0);
    while (running()) {
        if ($FIXED) {
            $bytes += length Storable::nfreeze($results);    # a serializer in C
        }
        else {
            $bytes += length $json->encode($results);
        }
        $done++;
    }
    report('exports', $done);
}

# ---------------------------------------------------------------- W21
sub ticket_db {
    my $path = "$DIR/db.sock";
    unlink $path;
    my $server = IO::Socket::UNIX->new(Local => $path, Listen => 64) or die "listen: $!";
    $SIG{CHLD} = 'IGNORE';
    $| = 1;
    print "ready\n";
    $SIG{ALRM} = sub { exit 0 };
    alarm($SECONDS < 30 ? 30 : int $SECONDS);
    while (1) {
        my $client = $server->accept or next;
        my $pid = fork;
        if (defined $pid && $pid == 0) {
            $SIG{ALRM} = 'DEFAULT';
            $client->autoflush(1);
            while (my $line = <$client>) {
                if ($line =~ /^HELLO/) { sleep 0.002; print $client "CHALLENGE 8f3a\n" }
                elsif ($line =~ /^AUTH/) { sleep 0.009; print $client "OK\n" }
                elsif ($line =~ /^SET/) { sleep 0.001; print $client "OK\n" }
                else { print $client "ROW 42 open 'printer on fire'\n" }
            }
            exit 0;
        }
        close $client;
    }
}

package Ticket::DB {
    sub new { return bless {}, shift }

    sub Ask {
        my ($self, $line) = @_;
        my $dbh = $self->{dbh};
        print $dbh "$line\n";
        return scalar <$dbh>;
    }

    sub Connect {
        my ($self) = @_;
        return $self->{dbh} if $self->{dbh};
        $self->{dbh} = IO::Socket::UNIX->new(Peer => "$DIR/db.sock") or die "connect: $!";
        $self->{dbh}->autoflush(1);
        $self->Ask('HELLO otobo');
        $self->Ask('AUTH 12ab8f3a');
        $self->Ask('SET NAMES utf8');
        return $self->{dbh};
    }

    sub Disconnect {
        my ($self) = @_;
        close delete $self->{dbh} if $self->{dbh};
    }
}

sub handle_request {
    my ($db, $id) = @_;
    $db->Connect;
    my $row = $db->Ask("SELECT id, state, title FROM ticket WHERE id = $id");
    my $page = "<html><body><h1>Ticket $id</h1><p>$row</p></body></html>";
    $db->Disconnect unless $FIXED;
    return length $page;
}

sub ticket_pages {
    my $db = Ticket::DB->new;
    my $done = 0;
    while (running()) {
        handle_request($db, $done % 1000);
        $done++;
    }
    report('pages', $done);
}

# ---------------------------------------------------------------- W22
sub copydata {
    my ($in, $out, $size) = @_;
    my $bytes = 0;
    my $buffer;
    while (running()) {
        my $got = sysread($in, $buffer, $size);
        last unless $got;
        my $at = 0;
        while ($at < $got) {
            my $put = syswrite($out, $buffer, $got - $at, $at);
            return $bytes unless $put;
            $at += $put;
        }
        $bytes += $got;
    }
    return $bytes;
}

sub file_manager {
    my $file = "$DIR/download.iso";
    open my $made, '>', $file or die;
    print $made 'x' x (1 << 20) for 1 .. 40;
    close $made;
    socketpair(my $browser, my $server, AF_UNIX, SOCK_STREAM, 0) or die;
    my $pid = fork;
    if ($pid == 0) {
        close $server;
        my $buffer;
        1 while sysread($browser, $buffer, 1 << 18);
        exit 0;
    }
    close $browser;
    my $bytes = 0;
    while (running()) {
        open my $in, '<', $file or die;
        $bytes += copydata($in, $server, $FIXED ? 1000000 : 1024);
        close $in;
    }
    close $server;
    waitpid $pid, 0;
    report('MB', $bytes / 1e6);
}

my %PROGRAMS = (
    'grammar-parser' => \&grammar_parser,
    'result-export'  => \&result_export,
    'ticket-db'      => \&ticket_db,
    'ticket-pages'   => \&ticket_pages,
    'file-manager'   => \&file_manager,
);

$PROGRAMS{$NAME}->();
