process.exit(42);
