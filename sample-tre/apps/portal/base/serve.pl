# Answers every request with one page. Usage: serve.pl FILE PORT
use strict;
use warnings;
use IO::Socket::INET;

my ($file, $port) = @ARGV;
$SIG{TERM} = sub { exit 0 };
$SIG{PIPE} = 'IGNORE';
my $server = IO::Socket::INET->new(LocalPort => $port, Listen => 64, ReuseAddr => 1)
    or die "cannot listen on port $port: $@\n";

# Not buffered, so that the log says at once that it is there.
print STDERR "serving $file on port $port\n";

while (1) {
    my $client = $server->accept or next;
    eval {
        # A visitor who says nothing must not keep the others waiting.
        local $SIG{ALRM} = sub { die "slow visitor\n" };
        alarm 2;
        while (my $line = <$client>) {
            last if $line =~ /^\r?\n$/;
        }
        open my $page, '<:raw', $file or die "cannot read $file: $!\n";
        my $body = do { local $/; <$page> };
        print $client "HTTP/1.0 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n",
            'Content-Length: ', length $body, "\r\nConnection: close\r\n\r\n", $body;
    };
    warn $@ if $@;
    alarm 0;
    close $client;
}
