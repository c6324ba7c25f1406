"""What the console asks a child process, because the answer needs a world, torch or the action host."""
