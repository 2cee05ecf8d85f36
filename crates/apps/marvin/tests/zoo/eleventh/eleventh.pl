#!/usr/bin/perl
# Test programs in Perl, each chosen by the first argument: CASE SECONDS FOLDER.
use strict;
use warnings;
use threads;
use Carp ();
use Cwd ();
use File::Path qw(make_path remove_tree);
use IO::Select;
use Time::HiRes qw(time sleep);

my ($case, $seconds, $folder) = @ARGV;
my $end = time + $seconds;

sub running { return time < $end }

sub own_folder {
    my $path = "$folder/$case";
    remove_tree($path);
    make_path($path);
    return $path;
}

our %routes;

sub load_routes {
    for my $i (1 .. 12_000) {
        $routes{"net$i"} = { gateway => "10.0.0.$i", hops => [ $i, $i + 1, $i + 2 ] };
    }
    return scalar keys %routes;
}

sub poll_router { return length $_[0] }

sub poll_network {
    load_routes();
    my $polls = 0;
    while (running()) {
        my $worker = threads->create(\&poll_router, "router$polls");
        $polls += $worker->join ? 1 : 0;
    }
    return ($polls, 'polls');
}

sub check_quota { my ($account, @limits) = @_; return note_problem($account, {@limits}) }

sub note_problem {
    my ($account, $limits) = @_;
    my $text = Carp::longmess("quota of $account is nearly used");
    return length $text;
}

sub walk_accounts {
    my ($depth, $account, @rest) = @_;
    return check_quota($account, map { ($_ => 1) } @rest) if $depth == 0;
    return walk_accounts($depth - 1, $account, @rest);
}

sub account_audit {
    my @limits = (map { "limit value number $_ of the account" } 1 .. 12);
    my $checked = 0;
    while (running()) {
        walk_accounts(24, "account$checked", @limits);
        $checked++;
    }
    return ($checked, 'accounts');
}

sub expire_sessions {
    my ($table, $now) = @_;
    my @old = grep { $table->{$_} < $now } keys %$table;
    delete @$table{@old};
    return scalar @old;
}

sub session_table {
    my %table = map { ("session$_" => $_ % 10) } 1 .. 200_000;
    my $expired = expire_sessions(\%table, 11);
    my $requests = 0;
    while (running()) {
        $table{"s$requests"} = 1;
        $expired += expire_sessions(\%table, 11);
        $requests++;
    }
    return ($requests, 'requests');
}

sub timeline_source {
    my ($out) = @_;
    for my $n (1 .. 20_000) {
        my $text = "tweet $n\n" x 3;
        syswrite $out, $text;
        sysread $_[1], my $answer, 1 or last;
    }
    return 0;
}

sub timeline_reader {
    pipe my $in, my $out or die;
    pipe my $ask, my $tell or die;
    my $child = fork;
    if (!$child) {
        close $in;
        close $tell;
        timeline_source($out, $ask);
        exit 0;
    }
    close $out;
    close $ask;
    my $select = IO::Select->new($in);
    my $lines = 0;
    while (running()) {
        my ($ready) = $select->can_read($end - time);
        last if !$ready;
        my $line = readline $ready;
        $lines++;
        syswrite $tell, '.' if $lines % 3 == 0;
    }
    close $tell;
    kill 'TERM', $child;
    waitpid $child, 0;
    return ($lines, 'lines');
}

sub audit_path {
    my ($file) = @_;
    return Cwd::cwd() . "/$file";
}

sub code_review {
    my $path = own_folder();
    chdir $path or die;
    my $commits = 0;
    while (running()) {
        my $file = audit_path("commit$commits.patch");
        $commits++ if !-e $file;
    }
    chdir '/';
    return ($commits, 'commits');
}

my %cases = (
    'poll-network'    => \&poll_network,
    'account-audit'   => \&account_audit,
    'session-table'   => \&session_table,
    'timeline-reader' => \&timeline_reader,
    'code-review'     => \&code_review,
);

my ($count, $things) = $cases{$case}->();
print "$case: $count $things\n";
