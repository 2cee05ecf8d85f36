#!/usr/bin/perl
# Programs after public reports, ninth half: Perl.
# Usage: perl ninth.pl CASE SECONDS FOLDER
use strict;
use warnings;
use File::Path qw(make_path remove_tree);
use IO::Select;
use IPC::Open3;
use Symbol qw(gensym);
use Time::HiRes qw(time alarm);

sub work_folder {
    my ($folder, $name) = @_;
    my $path = "$folder/$name";
    remove_tree($path);
    make_path($path);
    return $path;
}

sub apply_rules {
    my ($text, $rules) = @_;
    my $hits = 0;
    for my $rule (@$rules) {
        $hits++ if $$text =~ s/^$rule//;
    }
    return $hits;
}

sub text_cleaner {
    my ($seconds, $folder) = @_;
    work_folder($folder, 'text-cleaner');
    my $end   = time + $seconds;
    my $text  = "\x{3042}\x{3044}\x{3046} " x 500_000;
    my @rules = map { qr/\x{feff}#$_:/ } 1 .. 8;
    my $rules = 0;
    while (time < $end) {
        apply_rules(\$text, \@rules);
        $rules += @rules;
    }
    print "text-cleaner: $rules rules\n";
}

sub minify_string {
    my ($in, $end) = @_;
    my $out       = '';
    my $in_string = 0;
    my $from      = 0;
    my $tokens    = 0;
    while ($in =~ /(["\n\r]|\/\*|\*\/|\/\/)/g) {
        my $token = $1;
        my $pos   = pos $in;
        my $part  = substr($in, $from, $pos - length($token) - $from);
        $part =~ s/\s+//g unless $in_string;
        $out .= $part;
        $from = $pos;
        $tokens++;
        if ($token eq '"') {
            my $left = substr($in, 0, $pos - 1);
            my ($slashes) = $left =~ /(\\*)$/;
            $in_string = !$in_string unless length($slashes) % 2;
            $out .= $token;
        }
        elsif ($in_string) {
            $out .= $token;
        }
        last if time > $end;
    }
    return $tokens;
}

sub json_minify {
    my ($seconds, $folder) = @_;
    work_folder($folder, 'json-minify');
    my $end  = time + $seconds;
    my $json = "[\n";
    $json .= qq(  { "id": $_, "name": "user $_", "note": "a \\"b\\"" },\n) for 1 .. 12_000;
    $json .= "]\n";
    my $tokens = 0;
    while (time < $end) {
        $tokens += minify_string($json, $end);
    }
    print "json-minify: $tokens tokens\n";
}

sub number_lines {
    my ($seconds, $folder) = @_;
    my $dir = work_folder($folder, 'number-lines');
    open(my $out, '|-', "exec cat -n > '$dir/numbered'") or die "cat: $!";
    open(my $tee, '>&', $out) or die "dup: $!";
    my $lines = 0;
    for my $n (1 .. 500) {
        print {$n % 2 ? $out : $tee} "line $n\n";
        $lines++;
    }
    $tee->flush;
    local $SIG{ALRM} = sub { close $tee };
    alarm $seconds;
    close $out;
    print "number-lines: $lines lines\n";
}

sub spawn_task {
    pipe(my $in, my $out) or die "pipe: $!";
    my $pid = fork;
    if (!$pid) {
        close $in;
        syswrite $out, "READY";
        exit 0;
    }
    close $out;
    return { pid => $pid, in => $in, messages => 0, polls => 0 };
}

sub handle_children {
    my ($child, $select) = @_;
    for my $in ($select->can_read(1)) {
        $child->{polls}++;
        my $msg = ' ' x 5;
        if (sysread($in, $msg, 5)) {
            $child->{messages}++ if $msg eq 'READY';
        }
    }
}

sub agent_daemon {
    my ($seconds, $folder) = @_;
    work_folder($folder, 'agent-daemon');
    my $end    = time + $seconds;
    my $child  = spawn_task();
    my $select = IO::Select->new($child->{in});
    while (time < $end) {
        handle_children($child, $select);
    }
    waitpid $child->{pid}, 0;
    print "agent-daemon: $child->{messages} messages\n";
}

sub git_fetch {
    my ($seconds) = @_;
    $| = 1;
    for my $n (1 .. 4000) {
        print STDERR " * [new tag]         v1.$n     -> v1.$n\n";
    }
    print "fetched\n";
    exit 0;
}

sub run_command {
    my (@cmd) = @_;
    my $err = gensym;
    my $pid = open3(my $in, my $out, $err, @cmd);
    close $in;
    local $SIG{ALRM} = sub { kill TERM => $pid };
    alarm $ENV{RUN_SECONDS};
    my @out = <$out>;
    my @err = <$err>;
    waitpid $pid, 0;
    alarm 0;
    return scalar @out;
}

sub git_wrapper {
    my ($seconds, $folder) = @_;
    work_folder($folder, 'git-wrapper');
    local $ENV{RUN_SECONDS} = $seconds;
    my $lines = run_command($^X, $0, 'git-fetch', $seconds, $folder);
    print "git-wrapper: $lines answers\n";
}

my %cases = (
    'text-cleaner' => \&text_cleaner,
    'json-minify'  => \&json_minify,
    'number-lines' => \&number_lines,
    'agent-daemon' => \&agent_daemon,
    'git-fetch'    => \&git_fetch,
    'git-wrapper'  => \&git_wrapper,
);

my ($name, $seconds, $folder) = @ARGV;
$cases{$name}->($seconds, $folder);
