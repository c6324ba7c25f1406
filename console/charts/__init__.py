"""Pure numpy: curves to braille dots, with axes, marks and crosshair. Knows neither sessions nor Textual."""
