#!/usr/bin/perl
# Programs after public reports, one sub a case: sixth.pl NAME SECONDS FOLDER [fixed].
use strict;
use warnings;
use Errno qw(EAGAIN EWOULDBLOCK EINTR);
use IO::Handle;
use IO::Socket::INET;
use IO::Select;
use POSIX qw(WNOHANG);
use Socket qw(IPPROTO_TCP TCP_NODELAY);
use Sys::Hostname ();
use Time::HiRes qw(time);

my ($NAME, $SECONDS, $FOLDER, $how) = @ARGV;
my $FIXED = defined $how && $how eq 'fixed';
my $START = time;

sub going { return time - $START < $SECONDS }

sub done {
    my ($count, $unit) = @_;
    printf "%s: %d %s in %.1f s\n", $NAME, $count, $unit, time - $START;
    return;
}

# vcard-read: reads address cards from a file, piece by piece
sub cards_file {
    my $path = "$FOLDER/all.vcf";
    open my $out, '>', $path or die "$path: $!";
    for my $i (1 .. 4000) {
        print $out "BEGIN:VCARD\r\nVERSION:3.0\r\nN:Doe;John $i;;;\r\nFN:John $i Doe\r\n",
            "TEL;TYPE=HOME:+1 555 $i\r\nADR;TYPE=HOME:;;1 Main Street;Springfield;;;\r\n",
            "NOTE:", 'met at the fair ' x 8, "\r\nEND:VCARD\r\n";
    }
    close $out or die $!;
    return $path;
}

sub unfold_lines {
    my ($path, $lines) = @_;
    open my $in, '<', $path or die "$path: $!";
    my $text = '';
    while (my $line = <$in>) {
        last unless going();
        $line =~ tr/\r//d;
        $text .= $line;
        if ($FIXED) {
            $$lines++ if substr($text, -1) eq "\n";
        } else {
            $$lines++ if $text =~ /\n$/;
        }
    }
    close $in or die $!;
    return length $text;
}

sub vcard_read {
    my $path = cards_file();
    my $lines = 0;
    unfold_lines($path, \$lines) while going();
    return done($lines, 'lines');
}

# master-control: the pages of a site, each with a box of news of the machine
sub parse_link {
    my ($text) = @_;
    $text =~ s/\[([^\]|]+)\|([^\]]+)\]/<a href="\/title\/$1">$2<\/a>/g;
    return $text;
}

my $server_name;

sub master_control {
    my ($user, $page) = @_;
    my $host;
    if ($FIXED) {
        $server_name //= Sys::Hostname::hostname();
        $host = $server_name;
    } else {
        $host = `hostname`;
        chomp $host;
    }
    return "<div class='nodelet'><p>$user on $host, page $page</p></div>";
}

sub display_page {
    my ($number) = @_;
    my $body = join '', map { parse_link("<li>[node $_|a writeup of $_]</li>") } 1 .. 40;
    return "<html><ul>$body</ul>" . master_control('root', $number) . '</html>';
}

sub site_pages {
    my $pages = 0;
    while (going()) {
        display_page($pages);
        $pages++;
    }
    return done($pages, 'pages');
}

# redis-node: the peer of redis-load
sub redis_node {
    my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 8) or die $!;
    open my $out, '>', "$FOLDER/redis.port" or die $!;
    print $out $server->sockport;
    close $out or die $!;
    STDOUT->autoflush(1);
    print "ready\n";
    my $select = IO::Select->new($server);
    my %rest;
    while (going()) {
        for my $socket ($select->can_read(1)) {
            if ($socket == $server) {
                my $client = $server->accept or next;
                setsockopt $client, IPPROTO_TCP, TCP_NODELAY, 1;
                $select->add($client);
                $rest{$client} = '';
                next;
            }
            my $got = sysread $socket, $rest{$socket}, 65536, length $rest{$socket};
            if (!$got) {
                $select->remove($socket);
                delete $rest{$socket};
                close $socket;
                next;
            }
            my $count = 0;
            while ($rest{$socket} =~ /\G\*4\r\n(?:\$\d+\r\n[^\r]*\r\n){4}/gc) { $count++ }
            $rest{$socket} = substr $rest{$socket}, pos($rest{$socket}) // 0;
            syswrite $socket, ":1\r\n" x $count if $count;
        }
    }
    return;
}

# redis-load: sends commands to a store, many at a time, and reads the answers
package Redis {
    sub new {
        my ($class, $port) = @_;
        my $socket = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port") or die $!;
        setsockopt $socket, Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1;
        $socket->blocking(0);
        return bless { sock => $socket, rbuf => '', wbuf => '', waiting => 0 }, $class;
    }

    sub __write {
        my ($self, $text) = @_;
        while (length $text) {
            my $sent = syswrite $self->{sock}, $text;
            if (!defined $sent) {
                die $! unless $!{EAGAIN} || $!{EINTR};
                IO::Select->new($self->{sock})->can_write(5);
                next;
            }
            substr $text, 0, $sent, '';
        }
        return;
    }

    sub __try_read_sock {
        my ($self) = @_;
        my $got = sysread $self->{sock}, $self->{rbuf}, 16384, length $self->{rbuf};
        die 'closed' if defined $got && $got == 0;
        return;
    }

    sub __take_answers {
        my ($self) = @_;
        my $count = ($self->{rbuf} =~ s/^(?::1\r\n)+//) ? length($&) / 4 : 0;
        $self->{waiting} -= $count;
        return;
    }

    sub __send_command {
        my ($self, @words) = @_;
        my $text = '*' . @words . "\r\n" . join '', map { '$' . length($_) . "\r\n$_\r\n" } @words;
        $self->{waiting}++;
        if ($FIXED) {
            $self->{wbuf} .= $text;
            return;
        }
        $self->__try_read_sock;
        $self->__write($text);
        return;
    }

    sub wait_all_responses {
        my ($self) = @_;
        if (length $self->{wbuf}) {
            $self->__write($self->{wbuf});
            $self->{wbuf} = '';
        }
        $self->__take_answers;
        while ($self->{waiting} > 0) {
            IO::Select->new($self->{sock})->can_read(5);
            $self->__try_read_sock;
            $self->__take_answers;
        }
        return;
    }
}

sub redis_load {
    open my $in, '<', "$FOLDER/redis.port" or die $!;
    my $port = <$in>;
    close $in or die $!;
    my $redis = Redis->new($port);
    my $keys = 0;
    while (going()) {
        for my $i (1 .. 500) {
            $redis->__send_command('HSET', sprintf('k%06d', $keys % 10000), 's', $i % 100);
            $keys++;
        }
        $redis->wait_all_responses;
    }
    return done($keys, 'keys');
}

# minion-worker: takes jobs of a queue and gives each to a child
my %children;
my $finished = 0;

sub start_job {
    my ($id) = @_;
    my $pid = fork // die $!;
    if (!$pid) {
        my $sum = 0;
        $sum += $_ * $id % 7 for 1 .. 20000;
        POSIX::_exit(0);
    }
    $children{$pid} = $id;
    return;
}

sub reap_jobs {
    my ($flags) = @_;
    while (%children and (my $pid = waitpid -1, $flags) > 0) {
        delete $children{$pid};
        $finished++;
        last unless $flags;
    }
    return;
}

sub work {
    my ($max_jobs, $next) = @_;
    reap_jobs(WNOHANG);
    if (keys %children >= $max_jobs) {
        if ($FIXED) { reap_jobs(0) }
        else        { sleep 1 }
        return $next;
    }
    start_job($next);
    return $next + 1;
}

sub minion_worker {
    my $next = 1;
    $next = work(1, $next) while going();
    return done($finished, 'jobs');
}

my %cases = (
    'vcard-read'    => \&vcard_read,
    'site-pages'    => \&site_pages,
    'redis-node'    => \&redis_node,
    'redis-load'    => \&redis_load,
    'minion-worker' => \&minion_worker,
);
($cases{$NAME} // die "no case $NAME\n")->();
