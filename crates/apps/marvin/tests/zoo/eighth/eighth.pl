# Eighth set of Perl programs for the observer: one function per case.
# Use: perl eighth.pl CASE SECONDS FOLDER
use strict;
use warnings;
use File::Path qw(make_path remove_tree);
use IO::Select;
use IO::Socket::INET;
use Time::HiRes qw(time sleep);

sub fresh {
    my ($folder, $name) = @_;
    my $dir = "$folder/$name";
    remove_tree($dir);
    make_path($dir);
    return $dir;
}

sub done {
    my ($name, $count, $what) = @_;
    print "$name: $count $what\n";
}

sub publish_port {
    my ($dir, $port) = @_;
    open(my $out, '>', "$dir/port.new") or die $!;
    print $out $port;
    close($out);
    rename("$dir/port.new", "$dir/port") or die $!;
}

sub published_port {
    my ($dir) = @_;
    open(my $in, '<', "$dir/port") or die "no port below $dir";
    return scalar <$in>;
}

# --- product-import ---------------------------------------------------------

sub remove_tags_and_quote {
    my $s = shift;
    if (not defined $s) {
        $s = "";
    }
    $s =~ s/<(([^>]|\n)*)>//g;
    $s =~ s/</&lt;/g;
    $s =~ s/>/&gt;/g;
    $s =~ s/"/&quot;/g;
    $s =~ s/^\s+//;
    $s =~ s/\s+$//;
    return $s;
}

sub import_product {
    my ($product, $fields) = @_;
    my $modified = 0;
    foreach my $field (@$fields) {
        my $value = remove_tags_and_quote($product->{$field});
        if ($value ne "") {
            $product->{$field} = $value;
            $modified++;
        }
    }
    return $modified;
}

sub product_import {
    my ($seconds, $folder) = @_;
    fresh($folder, 'product-import');
    my @fields = map { ("nutrient_${_}_value", "nutrient_${_}_unit", "label_$_") } 1 .. 300;
    my $deadline = time + $seconds;
    my $products = 0;
    while (time < $deadline) {
        my $product = { code => $products, nutrient_7_value => '12.5', nutrient_7_unit => 'g' };
        import_product($product, \@fields);
        $products++;
    }
    done('product-import', $products, 'products');
}

# --- api-client -------------------------------------------------------------

sub my_readline {
    my ($socket, $deadline) = @_;
    my $select = IO::Select->new($socket);
    my $response = '';
    while (1) {
        my $left = $deadline - time;
        return $response if $left <= 0;
        return $response unless $select->can_read($left);
        my $read = sysread($socket, $response, 1024, length($response));
        last unless $read;
        last if $read < 1024;
    }
    return $response;
}

sub api_client {
    my ($seconds, $folder) = @_;
    fresh($folder, 'api-client');
    my $port = published_port("$folder/api-server");
    my $deadline = time + $seconds;
    my $answers = 0;
    while (time < $deadline) {
        my $socket = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port") or die $!;
        print $socket "POST /call HTTP/1.1\r\nHost: api\r\nConnection: keep-alive\r\n\r\n";
        $socket->flush;
        my $response = my_readline($socket, $deadline);
        $answers++ if length($response) && time < $deadline;
        close($socket);
    }
    done('api-client', $answers, 'answers');
}

sub api_server {
    my ($seconds, $folder) = @_;
    my $dir = fresh($folder, 'api-server');
    my $deadline = time + $seconds;
    my $listener = IO::Socket::INET->new(Listen => 20, LocalAddr => '127.0.0.1:0') or die $!;
    publish_port($dir, $listener->sockport);
    my $head = "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: ";
    my $body = 'x' x (1024 - length($head) - length("900\r\n\r\n"));
    my $answer = $head . length($body) . "\r\n\r\n" . $body;
    $| = 1;
    print "ready\n";
    my $select = IO::Select->new($listener);
    my %idle_since;
    while (time < $deadline) {
        foreach my $handle ($select->can_read(0.05)) {
            if ($handle == $listener) {
                my $client = $listener->accept or next;
                $select->add($client);
                next;
            }
            my $got = sysread($handle, my $request, 4096);
            if (!$got) {
                delete $idle_since{fileno $handle};
                $select->remove($handle);
                close($handle);
                next;
            }
            syswrite($handle, $answer);
            $idle_since{fileno $handle} = time;
        }
        foreach my $handle ($select->handles) {
            my $since = $idle_since{fileno $handle} or next;
            next if time - $since < 1.8;
            delete $idle_since{fileno $handle};
            $select->remove($handle);
            close($handle);
        }
    }
}

# --- shop-server ------------------------------------------------------------

sub read_entity {
    my ($socket, $deadline) = @_;
    my $in = '';
    vec($in, fileno($socket), 1) = 1;
    my $entity = 0;
    my $buf = '';
    while (1) {
        my $ready = $in;
        my $r = select($ready, undef, undef, 1);
        last if time >= $deadline;
        next unless $r > 0;
        my $n = sysread($socket, $buf, $r);
        last unless $n;
        $entity += $n;
    }
    return $entity;
}

sub shop_server {
    my ($seconds, $folder) = @_;
    fresh($folder, 'shop-server');
    my $port = published_port("$folder/shop-browser");
    my $deadline = time + $seconds;
    my $socket = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port") or die $!;
    my $bytes = read_entity($socket, $deadline);
    done('shop-server', $bytes, 'bytes');
}

sub shop_browser {
    my ($seconds, $folder) = @_;
    my $dir = fresh($folder, 'shop-browser');
    my $deadline = time + $seconds;
    my $listener = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1:0') or die $!;
    publish_port($dir, $listener->sockport);
    $| = 1;
    local $SIG{PIPE} = 'IGNORE';
    local $SIG{ALRM} = sub { exit 0 };
    alarm(int($seconds) || 1);
    print "ready\n";
    my $chunk = 'u' x 65536;
    while (my $client = $listener->accept) {
        while (time < $deadline) {
            last unless syswrite($client, $chunk);
        }
        close($client);
    }
}

# --- audio-frames -----------------------------------------------------------

sub extract_adts {
    my ($codec) = @_;
    my $length = unpack('n', substr($codec->{inbuf}, 0, 2));
    my $consumed = 2 + $length;
    my $frame = substr($codec->{inbuf}, 2, $length);
    $codec->{inbuf} = substr($codec->{inbuf}, $consumed);
    return $frame;
}

sub audio_frames {
    my ($seconds, $folder) = @_;
    fresh($folder, 'audio-frames');
    my $stream = join '', map { pack('n', 380) . 'f' x 380 } 1 .. 10000;
    my $deadline = time + $seconds;
    my $frames = 0;
    while (time < $deadline) {
        my $codec = { inbuf => $stream };
        while (length($codec->{inbuf}) && time < $deadline) {
            extract_adts($codec);
            $frames++;
        }
    }
    done('audio-frames', $frames, 'frames');
}

my %cases = (
    'product-import' => \&product_import,
    'api-client' => \&api_client,
    'api-server' => \&api_server,
    'shop-server' => \&shop_server,
    'shop-browser' => \&shop_browser,
    'audio-frames' => \&audio_frames,
);

my ($case, $seconds, $folder) = @ARGV;
$cases{$case}->($seconds, $folder);
