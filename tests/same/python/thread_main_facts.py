import threading
main = threading.main_thread()
print(main.name, main is threading.current_thread(), threading.active_count(), main.daemon, main.is_alive())
print(main.native_id == threading.get_native_id() == __import__("os").getpid())
