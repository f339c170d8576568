console.log(typeof gc, typeof WeakRef, typeof FinalizationRegistry, process.memoryUsage().heapUsed > 0);
