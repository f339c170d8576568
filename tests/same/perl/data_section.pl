print while <DATA>;
print tell(DATA) > 0 ? "positive\n" : "zero\n";
__DATA__
one
two
