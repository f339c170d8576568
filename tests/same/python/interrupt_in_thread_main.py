import _thread, time
try:
    _thread.interrupt_main()
    time.sleep(5)
except KeyboardInterrupt:
    print("main was interrupted")
