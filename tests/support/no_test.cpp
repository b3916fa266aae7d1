// A program must have something: this one has the headers that tests include (see CMakeLists.txt).
int main() { return 0; }
