<?php
// What a program has of hotcell: its arguments, what it shows, and values that it shares.
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

/** Values by name, of this program alone. */
final class Vars
{
    public static array $all = [];
}
