# The second late half of the programs from public reports (tests/outside/49-second-aside.md), in
# Perl: each does steadily what its report describes, for some seconds: second.pl NAME SECONDS DIR.
use strict;
use warnings;
use Time::HiRes qw(time);

my ($name, $seconds, $dir, $is_repaired) = @ARGV;
my $end = time + $seconds;

# S31: the words of an article are filtered by lists that are put into an expression each time.
my @stop_words = map { "stopword$_" } 1 .. 400;
# Each language adds a word of its own.
my @lists = map { my $own = "own$_"; join '|', map { "^$_\$" } @stop_words, $own } 0 .. 6;
my @filters = ('[\,\&\<\>\?"\!\*\|;\[\]\(\)\+\$\^=]', '^[\':.]|[\':.]$', '^[^\w]+$');
my $compiled = join '|', map { "^$_\$" } @stop_words;
$compiled = qr/$compiled/;

sub string_to_word {
    my ($text) = @_;
    my @words;
    for my $word (split /\s+/, $text) {
        for my $filter (@filters) { $word =~ s/$filter//g }
        next if length $word < 3;
        if ($is_repaired) {
            next if $word =~ $compiled;
        } else {
            my $list = $lists[length($word) % 7];
            next if $word =~ /$list/i;
        }
        push @words, lc $word;
    }
    return scalar @words;
}

sub index_articles {
    my $text = join ' ', map { ('Ticket', 'article', 'number', "printer$_", 'is', 'slow,') } 1 .. 8;
    my ($articles, $words) = (0, 0);
    while (time < $end) {
        $words += string_to_word($text);
        $articles++;
    }
    print STDERR "$articles articles, $words words\n";
}

# S36: a login, by a hash that is meant to be slow.
sub hash_secret {
    my ($secret) = @_;
    return crypt $secret, '$2b$09$abcdefghijklmnopqrstuu';
}

sub log_in {
    my $logins = 0;
    while (time < $end) {
        hash_secret("example $logins");
        $logins++;
    }
    print STDERR "$logins logins\n";
}

chdir $dir or die "$dir: $!";
my %programs = ('index-articles' => \&index_articles, 'log-in' => \&log_in);
$programs{$name}->();
