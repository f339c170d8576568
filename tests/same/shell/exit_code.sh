trap 'echo leaving with $?' EXIT
false
(exit 3) || exit 5
