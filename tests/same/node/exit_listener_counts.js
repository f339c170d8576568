console.log(process.eventNames(), process.listenerCount("exit"), process.listenerCount("uncaughtException"));
