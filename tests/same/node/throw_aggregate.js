throw new AggregateError([new Error("one"), new Error("two")], "several");
