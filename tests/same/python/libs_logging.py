import logging
logging.warning("to stderr")
logging.info("hidden")
logging.basicConfig(level=logging.INFO)
logging.info("too late, since a handler is there")
print(logging.getLogger().handlers, logging.getLogger().level)
