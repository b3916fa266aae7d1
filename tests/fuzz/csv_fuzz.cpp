// A byte that says whether there is a header (odd), the columns of x and that of y as parts, and the file as the rest.
#include "importer_fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  if (size > fuzz::most_input_bytes) return 0;
  static const fuzz::Folder folder;
  fuzz::Parts parts{data, size};
  data::ImportOptions options;
  options.has_header = parts.byte() % 2 == 1;
  options.x_columns = parts.part();
  options.y_column = parts.part();
  const std::string file = folder.write("f.csv", parts.rest());
  return fuzz::try_source([&] { return data::open_csv(file, options); });
}
