#!/usr/bin/perl
# Programs written anew from public reports: NAME SECONDS SCRATCH [fixed].
use strict;
use warnings;
use File::Path qw(make_path remove_tree);
use POSIX qw(WNOHANG mktime);
use Time::HiRes qw(time);
use Time::Local qw(timelocal);

my ($name, $seconds, $scratch, $form) = @ARGV;
my $fixed = ($form // '') eq 'fixed';
my $end = time + $seconds;

sub folder {
    my ($which) = @_;
    my $place = "$scratch/$which";
    remove_tree($place);
    make_path($place);
    return $place;
}

sub report {
    my ($what, $count) = @_;
    printf "%s: %d in %.1f s\n", $what, $count, $seconds;
}

# --- AD19: a tool that is run for each picture ---------------------------------------------------
sub reap_nb {
    my ($kid) = @_;
    return waitpid($kid, WNOHANG) == $kid;
}

sub _select_loop {
    my ($kid) = @_;
    my $naps = 0;
    until (reap_nb($kid)) {
        my $timeout = $naps++ < 10 ? 0.0001 : 0.5;
        select(undef, undef, undef, $timeout);
    }
}

sub run {
    my (@command) = @_;
    my $kid = fork;
    if (!$kid) {
        exec @command or POSIX::_exit(127);
    }
    if ($fixed) { waitpid($kid, 0) } else { _select_loop($kid) }
    return $? == 0;
}

sub picture_run {
    my $pictures = 0;
    while (time < $end) {
        run('sleep', '0.03') and $pictures++;
    }
    report('pictures', $pictures);
}

# --- AD20: lines of a system log -----------------------------------------------------------------
my %MONTH;
@MONTH{qw(jan feb mar apr may jun jul aug sep oct nov dec)} = (0 .. 11);

sub parse_date {
    my ($text) = @_;
    local $_ = $text;
    s/^\s+//;
    s/^(?:Sun|Mon|Tue|Wed|Thu|Fri|Sat)[a-z]*,?\s*//i;
    my ($day, $mon, $yr, $hr, $min, $sec, $tz);
    (($day, $mon, $yr, $hr, $min, $sec, $tz) =
        /^(\d\d?)(?:\s+|[-\/])(\w+)(?:\s+|[-\/])(\d+)(?:(?:\s+|:)(\d\d?):(\d\d)(?::(\d\d))?)?
          \s*([-+]?\d{2,4}|(?![APap][Mm]\b)[A-Za-z]+)?\s*(?:\(\w+\))?\s*$/x)
    || (($mon, $day, $hr, $min, $sec, $tz, $yr) =
        /^(\w{1,3})\s+(\d\d?)\s+(\d\d?):(\d\d)(?::(\d\d))?\s+
          (?:((?![APap][Mm]\b)[A-Za-z]+)\s+)?(\d+)\s*$/x)
    || (($yr, $mon, $day, $hr, $min, $sec, $tz) =
        /^(\d{4})[-\/]?(\d\d?)[-\/]?(\d\d?)(?:(?:\s+|[-:Tt])(\d\d?):?(\d\d)
          (?::?(\d\d(?:\.\d*)?))?)?\s*([-+]?\d\d?:?(?:\d\d)?|Z|z)?\s*$/x)
    || return;
    $mon = exists $MONTH{lc $mon} ? $MONTH{lc $mon} + 1 : $mon;
    return ($yr, $mon, $day, $hr, $min, $sec, $tz);
}

sub str2time {
    my ($text) = @_;
    my ($yr, $mon, $day, $hr, $min, $sec) = parse_date($text) or return;
    return eval { timelocal($sec, $min, $hr, $day, $mon - 1, $yr) };
}

sub parse_syslog_line {
    my ($line) = @_;
    my ($mon, $day, $hms, $host, $program, $text) =
        $line =~ /^(\w{3})\s+(\d+)\s+(\S+)\s+(\S+)\s+([^:]+):\s+(.*)$/ or return;
    my %message = (host => $host, program => $program, content => $text);
    if ($fixed) {
        my ($hr, $min, $sec) = split /:/, $hms;
        $message{epoch} = mktime($sec, $min, $hr, $day, $MONTH{lc $mon}, 116);
    } else {
        $message{epoch} = str2time("$mon $day $hms 2016");
    }
    return \%message;
}

sub syslog_read {
    $ENV{TZ} = 'UTC';
    my @lines = map {
        sprintf 'Feb %2d %02d:%02d:%02d web%d sshd[%d]: session %d opened',
            1 + $_ % 28, $_ % 24, $_ % 60, $_ % 59, $_ % 7, $_, $_
    } 1 .. 2000;
    my $read = 0;
    while (time < $end) {
        parse_syslog_line($_) && $read++ for @lines;
    }
    report('lines', $read);
}

# --- AD21: addresses of a trace and a map of names -----------------------------------------------
sub find_entry {
    my ($map_entries, $address) = @_;
    if ($fixed) {
        my ($low, $high) = (0, $#$map_entries);
        while ($low < $high) {
            my $middle = ($low + $high + 1) >> 1;
            if ($map_entries->[$middle][0] <= $address) { $low = $middle }
            else { $high = $middle - 1 }
        }
        my $entry = $map_entries->[$low];
        return $address < $entry->[0] + $entry->[1] ? $entry : undef;
    }
    for my $entry (@$map_entries) {
        return $entry if $address >= $entry->[0] && $address < $entry->[0] + $entry->[1];
    }
    return;
}

sub trace_names {
    my @map_entries = map { [1_000_000_000 + $_ * 256, 200, "method_$_"] } 0 .. 18999;
    my ($number, $named) = (0, 0);
    while (time < $end) {
        for (1 .. 20) {
            my $address = 1_000_000_000 + ($number++ * 7919 * 64) % (19000 * 256);
            my $entry = find_entry(\@map_entries, $address);
            $named++ if $entry;
        }
    }
    report("addresses ($named with a name)", $number);
}

# --- AD22: genes of a reference, looked up in a list of names ------------------------------------
sub check_gene {
    my ($names, $gene, $index) = @_;
    return exists $index->{$gene} if $fixed;
    my $found = `grep -w -m 1 "$gene" "$names"`;
    return $found ne '';
}

sub gene_setup {
    my $names = folder('gene-setup') . '/names.txt';
    my %index;
    open my $out, '>', $names or die;
    for my $number (0 .. 19999) {
        print $out "GENE$number\tname of gene $number\n";
        $index{"GENE$number"} = 1;
    }
    close $out;
    my ($checked, $found) = (0, 0);
    while (time < $end) {
        $found++ if check_gene($names, 'GENE' . ($checked * 37 % 20000), \%index);
        $checked++;
    }
    report("genes ($found found)", $checked);
}

my %cases = ('picture-run' => \&picture_run, 'syslog-read' => \&syslog_read,
    'trace-names' => \&trace_names, 'gene-setup' => \&gene_setup);
$cases{$name}->();
