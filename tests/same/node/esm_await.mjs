const value = await new Promise((resolve) => setTimeout(resolve, 5, "late"));
console.log(value);
