require("fs").readFileSync("/no/such");
