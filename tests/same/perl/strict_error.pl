use strict;
$undeclared = 1;
