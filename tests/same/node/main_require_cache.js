console.log(Object.keys(require.cache));
