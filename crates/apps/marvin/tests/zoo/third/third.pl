# The third late part of the programs from public reports (tests/outside/49-third-aside-scripts.md),
# for Perl: each does steadily what its report describes, for some seconds: perl third.pl NAME
# SECONDS DIR. REPAIRED=1 in the environment asks for the repaired form, to compare with.
use strict;
use warnings;
use POSIX ();
use Socket;
use Time::HiRes qw(time sleep);

my ($name, $seconds, $dir) = @ARGV;
my $end = time + $seconds;
my $is_repaired = exists $ENV{REPAIRED};
$| = 1;

sub is_over { return time >= $end }
sub tell_of { print STDERR "@_\n" }

# U16: procedures of one database are translated for another one.
my %translator = (text_values => {}, comment_values => {}, package_functions => {});

sub read_source {
    for my $n (0 .. 299) {
        $translator{text_values}{$n} = "'message $n of the procedure: value must be between $n and 99'";
    }
    for my $p (0 .. 11) {
        for my $k (0 .. 9) {
            $translator{package_functions}{"pkg$p"}{"get_value_${p}_$k"} =
                { package => "pkg$p", name => "pkg$p.get_value_${p}_$k" };
        }
    }
    my @functions;
    for my $n (0 .. 49) {
        push @functions, "CREATE FUNCTION f$n() RETURNS text AS\n"
            . "  IF v > $n THEN\n    RETURN ?TEXTVALUE$n?;\n  END IF;\n" x 20 . "END;\n";
    }
    return @functions;
}

sub restore_text_constant_part {
    my ($str) = @_;
    if (!$is_repaired) {
        my $functions = $translator{package_functions};
        foreach my $p (keys %$functions) {
            foreach my $k (keys %{$functions->{$p}}) {
                my $pkname = $functions->{$p}{$k}{package} . '.';
                map {
                    $translator{text_values}{$_} =~
                        s/($pkname)?\b$k\s*\(/$functions->{$p}{$k}{name}\(/igs;
                } keys %{$translator{text_values}};
            }
        }
    }
    $$str =~ s/\?TEXTVALUE(\d+)\?/$translator{text_values}{$1}/gs;
}

sub restore_comments {
    my ($content) = @_;
    while ($$content =~ s/(\%ORA2PG_COMMENT\d+\%)[\n]*/$translator{comment_values}{$1}\n/is) { }
    restore_text_constant_part($content);
}

sub plsql_to_plpgsql {
    my ($text) = @_;
    $text =~ s/\bRETURN\b/RETURN/gi;
    $text =~ s/\bVARCHAR2\b/varchar/gi;
    $text =~ s/\bNVL\s*\(/coalesce(/gi;
    restore_comments(\$text);
    return $text;
}

sub translate_procedures {
    my @functions = read_source();
    my $count = 0;
    while (!is_over()) {
        my $text = plsql_to_plpgsql($functions[$count % @functions]);
        $count++;
    }
    tell_of($count, 'functions');
}

# U17: lines of a dump are searched for a byte after the address.
sub search_dump {
    my @lines = map {
        my $first = $_ * 64;
        join ' ', map { sprintf '%08x: %02x', $first + $_, $_ * 7 % 160 } 0 .. 31;
    } 0 .. 199;
    my $pattern = $is_repaired ? qr/^[^\r\n]*:\s*ab/i : qr/[^\r\n]*:\s*ab/i;
    my ($found, $searched) = (0, 0);
    while (!is_over()) {
        foreach my $line (@lines) {
            $found++ if $line =~ $pattern;
            $searched++;
        }
    }
    tell_of($searched, 'lines');
}

# U18: a manager of child processes waits for a place.
my %children;

sub waitpid_non_blocking {
    foreach my $pid (keys %children) {
        my $reaped = waitpid $pid, POSIX::WNOHANG();
        if ($reaped == $pid) {
            delete $children{$pid};
            return $pid;
        }
    }
    return 0;
}

sub wait_one_child {
    return if !%children;
    while (!waitpid_non_blocking()) {
        sleep 0.1 if $is_repaired;
    }
}

sub start_child {
    my ($max) = @_;
    wait_one_child() while keys %children >= $max;
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        sleep 0.8;
        POSIX::_exit(0);
    }
    $children{$pid} = 1;
}

sub manage_children {
    my $started = 0;
    while (!is_over()) {
        start_child(1);
        $started++;
    }
    wait_one_child() while %children;
    tell_of($started, 'children');
}

# U19: the lines of a proxy's log get the names of the clients.
my %cache;

sub resolve_host {
    my ($ip) = @_;
    if (!exists $cache{$ip}) {
        my $host;
        if (!$is_repaired) {
            $host = gethostbyaddr(inet_aton($ip), AF_INET);
        }
        $cache{$ip} = defined $host ? $host : $ip;
    }
    return $cache{$ip};
}

sub parse_log {
    my $lines = 0;
    my %bytes;
    while (!is_over()) {
        my $client = $lines < 20 ? "10.1.0.$lines" : '10.' . join '.', map { int rand 250 } 1 .. 3;
        my $line = sprintf '%.3f 120 %s TCP_MISS/200 %d GET http://example.org/%d - DIRECT/1.2.3.4 text/html',
            time, $client, $lines * 31 % 9000, $lines;
        my (undef, undef, $ip, undef, $size) = split ' ', $line;
        $bytes{resolve_host($ip)} += $size;
        $lines++;
        last if $lines >= 100_000;
    }
    tell_of($lines, 'lines');
}

# The name server of this place does not answer: the log is read in a namespace whose name server
# is a socket that is never read.
sub analyze_squid {
    if (!$ENV{IN_NAMESPACE}) {
        $ENV{IN_NAMESPACE} = 1;
        exec 'unshare', '--user', '--map-root-user', '--mount', '--net', $^X, $0, @ARGV
            or die "unshare: $!";
    }
    open my $file, '>', "$dir/resolv.conf" or die "$dir: $!";
    print $file "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n";
    close $file;
    system('ip', 'link', 'set', 'lo', 'up') == 0 or die 'ip';
    system('mount', '--bind', "$dir/resolv.conf", '/etc/resolv.conf') == 0 or die 'mount';
    socket my $silent, PF_INET, SOCK_DGRAM, 0 or die "socket: $!";
    bind $silent, pack_sockaddr_in(53, inet_aton('127.0.0.1')) or die "bind: $!";
    $end = time + $seconds;
    parse_log();
}

# U20: a monitor with much data in memory starts small programs.
my $store = '';

sub run_check {
    return $is_repaired ? 0 : system '/bin/true';
}

sub spawn_checks {
    my $checks = 0;
    my $page = 'status=ok value=42 since=1463986' x 32768;
    $store .= $page for 1 .. 160;
    $end = time + $seconds;
    while (!is_over()) {
        run_check();
        $checks++;
    }
    tell_of($checks, 'checks,', length $store, 'bytes');
}

my %programs = (
    'translate-procedures' => \&translate_procedures,
    'search-dump'          => \&search_dump,
    'manage-children'      => \&manage_children,
    'analyze-squid'        => \&analyze_squid,
    'spawn-checks'         => \&spawn_checks,
);
$programs{$name}->();
