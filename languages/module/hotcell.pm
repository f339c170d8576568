# What a program has of hotcell: its arguments, what it shows, values by name, tools that it may call.
package hotcell;
use strict;
use warnings;

# The program's arguments, as they were when it began.
our @args = @ARGV;
# Values by name, of this program alone.
our %vars;

# Prints values as they are shown.
sub display {
    require Data::Dumper;
    local $Data::Dumper::Terse = 1;
    print ref $_ ? Data::Dumper::Dumper($_) : "$_\n" for @_;
}

# Calls a tool of an upstream server: hotcell::call("github.list_issues", { repo => "x" }).
sub call {
    my ($tool, $arguments) = @_;
    require IPC::Open3;
    require JSON::PP;
    my $json = JSON::PP->new->allow_nonref;
    my ($in, $out);
    my $mcp = eval { IPC::Open3::open3($in, $out, undef, 'mcp', 'call', $tool, $json->encode($arguments // {})) };
    die "this run was given no servers: see `hotcell servers`\n" if !$mcp;
    close $in;
    my $said = do { local $/; readline $out };
    waitpid $mcp, 0;
    die $said if $?;
    return $json->decode($said);
}

1;
