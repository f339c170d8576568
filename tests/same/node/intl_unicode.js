console.log("žluťoučký 🐈".length, "İ".toLowerCase().length, ["z", "ä"].sort(new Intl.Collator("de").compare));
