"""What logs say about a cache: hit rates, times, money, reasons. Works on files alone."""
