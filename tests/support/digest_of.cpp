// digest_of FILE: prints its digest, as DONE of a checkpoint has that of its index.
#include <fmt/format.h>

#include "io/digest.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  fmt::print("{}\n", lockstep::io::digest_of_file(argv[1]));
}
