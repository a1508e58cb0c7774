"""Tables from outside: numbers, texts and lines as files hold them, read strictly."""
