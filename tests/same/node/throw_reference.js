console.log(missing);
