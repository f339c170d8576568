# --- tool
# description = "Returns a sound"
# ---
import io
import wave

import hotcell

sound = io.BytesIO()
with wave.open(sound, "wb") as out:
    out.setnchannels(1)
    out.setsampwidth(2)
    out.setframerate(8000)
    out.writeframes(bytes(160))
hotcell.audio(sound.getvalue())
