// An .npz archive.
#include "importer_fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  if (size > fuzz::most_input_bytes) return 0;
  static const fuzz::Folder folder;
  const std::string file = folder.write("a.npz", fuzz::Parts{data, size}.rest());
  return fuzz::try_source([&] { return data::open_npy(file, {}); });
}
