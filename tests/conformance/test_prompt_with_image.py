# --- prompt
# description = "An image and what to do with it"
# ---
import base64

import hotcell

png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
hotcell.image(base64.b64decode(png))
print("Please analyze the image above.")
