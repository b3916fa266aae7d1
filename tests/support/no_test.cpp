// A program needs a source: this one includes the headers that tests include (see CMakeLists.txt).
int main() { return 0; }
