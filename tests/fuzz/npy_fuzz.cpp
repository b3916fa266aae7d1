// Two .npy files: x as a part, y as the rest.
#include "importer_fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  if (size > fuzz::most_input_bytes) return 0;
  static const fuzz::Folder folder;
  fuzz::Parts parts{data, size};
  folder.write("x.npy", parts.part());
  folder.write("y.npy", parts.rest());
  return fuzz::try_source([&] { return data::open_npy(folder.path(), {}); });
}
