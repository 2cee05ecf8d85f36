# Tenth half of the zoo: programs in Perl. Arguments: CASE SECONDS FOLDER.
use strict;
use warnings;
use File::Path qw(make_path remove_tree);
use Time::HiRes qw(time sleep);

my ($case, $seconds, $folder) = @ARGV;
my $end = time + $seconds;
my $dir = "$folder/$case";
remove_tree($dir);
make_path($dir);

my $stop = 0;
my @children;

sub reaper {
    while (wait() != -1) { last if $stop }
}

sub if_reader {
    my $read = 0;
    $SIG{CHLD} = \&reaper;
    my $helper = fork;
    if (!$helper) {
        $SIG{CHLD} = 'DEFAULT';
        sleep 0.25 while time < $end;
        exit 0;
    }
    push @children, $helper;
    while (time < $end) {
        open my $pipe, '-|', 'cat', '/proc/net/dev' or die;
        my ($lo) = grep { /lo:/ } <$pipe>;
        $read++ if defined $lo;
        close $pipe;
    }
    $stop = 1;
    return ($read, 'interfaces');
}

package TypeCheck {
    sub new { my ($class, %self) = @_; return bless {%self}, $class }
    sub is_a_type_of {
        my ($self, $value) = @_;
        return $self->{parent}->is_a_type_of($value) && $self->{where}->($value)
            if $self->{parent};
        return $self->{where}->($value);
    }
    sub assert_valid {
        my ($self, $value) = @_;
        die "not a $self->{name}" unless $self->is_a_type_of($value);
        return 1;
    }
}

my $any = TypeCheck->new(name => 'Any', where => sub { 1 });
my $defined = TypeCheck->new(name => 'Defined', parent => $any, where => sub { defined $_[0] });
my $ref = TypeCheck->new(name => 'Ref', parent => $defined, where => sub { ref $_[0] });
my $named = TypeCheck->new(name => 'Named', parent => $ref,
    where => sub { exists $_[0]{name} });
my $str_name = TypeCheck->new(name => 'StrNameValid',
    parent => TypeCheck->new(name => 'Str', parent => $defined, where => sub { !ref $_[0] }),
    where => sub { $_[0] =~ /^[_A-Za-z][_0-9A-Za-z]*\z/ });
my $map_type = TypeCheck->new(name => 'Map[StrNameValid,Named]', parent => $ref,
    where => sub {
        my ($map) = @_;
        $str_name->assert_valid($_) && $named->assert_valid($map->{$_}) for keys %$map;
        return 1;
    });

sub lookup_type {
    my ($map, $typedef) = @_;
    $map_type->assert_valid($map);
    $named->assert_valid($typedef);
    return $map->{ $typedef->{name} };
}

sub schema_types {
    my %map = map { ("Type$_" => { name => "Type$_" }) } 1 .. 300;
    my $found = 0;
    while (time < $end) {
        for my $i (1 .. 20) {
            $found++ if lookup_type(\%map, { name => "Type$i" });
        }
    }
    return ($found, 'types');
}

sub pipe_view {
    my $source = "$dir/testfile";
    open my $make, '>', $source or die;
    syswrite $make, 'z' x 1048576 for 1 .. 64;
    close $make;
    my $pid = open my $out, '|-', $^X, '-e', '1 while sysread STDIN, $b, 1048576';
    die unless $pid;
    binmode $out;
    my $moved = 0;
    while (time < $end) {
        open my $in, '<:raw', $source or die;
        while (my $got = sysread $in, my $buffer, 1048576) {
            print {$out} $buffer;
            $moved++;
            last if time >= $end;
        }
        close $in;
    }
    close $out;
    return ($moved, 'mebibytes');
}

sub is_searchable { return $_[0] =~ /\.(?:pl|pm|t)\z/ }

sub files_iterator {
    my ($queue) = @_;
    while (@$queue) {
        my $name = shift @$queue;
        if (-d $name) {
            opendir my $handle, $name or next;
            push @$queue, map { "$name/$_" } grep { !/^\.\.?\z/ } readdir $handle;
            closedir $handle;
            next;
        }
        next if -l $name;
        next unless -f $name;
        next if -p $name || -S $name;
        next unless is_searchable($name);
        return $name;
    }
    return;
}

sub code_search {
    for my $d (1 .. 20) {
        make_path("$dir/tree/part$d");
        for my $f (1 .. 150) {
            open my $file, '>', "$dir/tree/part$d/object$f." . ($f % 50 ? 'o' : 'pm') or die;
            close $file;
        }
    }
    my $seen = 0;
    while (time < $end) {
        my @queue = ("$dir/tree");
        $seen++ while defined files_iterator(\@queue) && time < $end;
    }
    return ($seen, 'files');
}

my %cases = (
    'if-reader' => \&if_reader,
    'schema-types' => \&schema_types,
    'pipe-view' => \&pipe_view,
    'code-search' => \&code_search,
);
my ($count, $things) = $cases{$case}->();
print "$case: $count $things\n";
kill TERM => @children if @children;
