<?php
// What a program has of hotcell: its arguments, what it shows, values by name, tools that it may call.
namespace hotcell;

/** The program's arguments. */
function args(): array
{
    return array_slice($_SERVER['argv'] ?? [], 1);
}

/** Prints values as they are shown. */
function display(...$values): void
{
    foreach ($values as $value) {
        echo is_string($value) ? $value : json_encode($value, JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES), "\n";
    }
}

/** Calls a tool of an upstream server: `\hotcell\call('github.list_issues', ['repo' => 'x'])`. */
function call(string $tool, array $arguments = []): mixed
{
    $pipes = [];
    $streams = [['pipe', 'r'], ['pipe', 'w'], ['pipe', 'w']];
    $mcp = @proc_open(['mcp', 'call', $tool, '-'], $streams, $pipes);
    if ($mcp === false) {
        throw new \RuntimeException('this run was given no servers: see `hotcell servers`');
    }
    fwrite($pipes[0], json_encode((object) $arguments));
    fclose($pipes[0]);
    $out = stream_get_contents($pipes[1]);
    $said = stream_get_contents($pipes[2]);
    if (proc_close($mcp) !== 0) {
        throw new \RuntimeException(trim($said));
    }
    return json_decode($out, true);
}

/** Values by name, of this program alone. */
final class Vars
{
    public static array $all = [];
}
