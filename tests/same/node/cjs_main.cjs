console.log(require.main === module, __filename, typeof require);
