#include "data/format/known_formats.hpp"

#include <array>

namespace lockstep::data {
namespace {

using namespace std::string_view_literals;

struct Signature {
  std::size_t at;
  std::string_view bytes;
  KnownFormat format;
};

constexpr std::string_view to_image = "convert it to PNG or JPEG";
constexpr std::string_view to_table = "write it as .npz, HDF5 or CSV";
constexpr std::string_view to_array = "import it with `lockstep shard import npy`";
constexpr std::string_view to_hdf5 = "import it with `lockstep shard import hdf5`";
constexpr std::string_view unpack_first = "unpack it first";
constexpr std::string_view fetch_again = "fetch the file again: the server sent this instead";

// More specific signatures come first.
constexpr std::array signatures{
    Signature{8, "WEBP"sv, {"WebP", to_image}},
    Signature{0, "GIF8"sv, {"GIF", to_image}},
    Signature{0, "II*\0"sv, {"TIFF", to_image}},
    Signature{0, "MM\0*"sv, {"TIFF", to_image}},
    Signature{0, "II+\0"sv, {"TIFF", to_image}},
    Signature{0, "MM\0+"sv, {"TIFF", to_image}},
    Signature{4, "ftypavi"sv, {"AVIF", to_image}},
    Signature{4, "ftyphei"sv, {"HEIC", to_image}},
    Signature{4, "ftypmif1"sv, {"HEIC", to_image}},
    Signature{4, "ftyphev"sv, {"HEIC", to_image}},
    Signature{4, "ftypmsf1"sv, {"HEIC", to_image}},
    Signature{4, "ftyp"sv, {"a video (MP4)", "write its frames as PNG or JPEG"}},
    Signature{0, "\0\0\0\x0cjP  "sv, {"JPEG 2000", to_image}},
    Signature{0, "\xff\x4f\xff\x51"sv, {"JPEG 2000", to_image}},
    Signature{0, "\xff\x0a"sv, {"JPEG XL", to_image}},
    Signature{0, "\0\0\0\x0cJXL "sv, {"JPEG XL", to_image}},
    Signature{0, "8BPS"sv, {"a Photoshop file", to_image}},
    Signature{0, "\x76\x2f\x31\x01"sv, {"OpenEXR", to_image}},
    Signature{128, "DICM"sv, {"DICOM", to_image}},
    Signature{0, "P1"sv, {"PBM", to_image}},
    Signature{0, "P4"sv, {"PBM", to_image}},
    Signature{0, "P2"sv, {"PGM as text", "write it as binary PGM (P5), or as PNG"}},
    Signature{0, "P3"sv, {"PPM as text", "write it as binary PPM (P6), or as PNG"}},
    Signature{0, "P7"sv, {"PAM", to_image}},
    Signature{0, "\x89PNG"sv, {"PNG", "import a folder per class with `lockstep shard import images`"}},
    Signature{0, "\xff\xd8\xff"sv, {"JPEG", "import a folder per class with `lockstep shard import images`"}},
    Signature{0, "version https://git-lfs"sv, {"a Git LFS pointer", "fetch the file itself: git lfs pull"}},
    Signature{0, "%PDF"sv, {"PDF", to_image}},
    Signature{0, "<!DOCTYPE"sv, {"a web page", fetch_again}},
    Signature{0, "<!doctype"sv, {"a web page", fetch_again}},
    Signature{0, "<html"sv, {"a web page", fetch_again}},
    Signature{0, "<HTML"sv, {"a web page", fetch_again}},
    Signature{0, "<?xml"sv, {"XML", fetch_again}},
    Signature{0, "<svg"sv, {"SVG", to_image}},
    Signature{0, "PAR1"sv, {"Parquet", to_table}},
    Signature{0, "ARROW1"sv, {"Arrow", to_table}},
    Signature{0, "SQLite format 3"sv, {"SQLite", to_table}},
    Signature{0, "\xd0\xcf\x11\xe0"sv, {"a spreadsheet (xls)", "save it as CSV in UTF-8"}},
    Signature{0, "\x0e\x03\x13\x01"sv, {"HDF4", "convert it to HDF5 (h4toh5)"}},
    Signature{0, "CDF\x01"sv, {"netCDF version 3", "convert it to HDF5 (nccopy -k nc4)"}},
    Signature{0, "CDF\x02"sv, {"netCDF version 3", "convert it to HDF5 (nccopy -k nc4)"}},
    Signature{0, "CDF\x05"sv, {"netCDF version 3", "convert it to HDF5 (nccopy -k nc4)"}},
    Signature{0, "MATLAB 5.0 MAT-file"sv, {"a MATLAB file before 7.3", "save it with -v7.3, and import it as hdf5"}},
    Signature{0, "MATLAB 7.3 MAT-file"sv, {"a MATLAB 7.3 file", to_hdf5}},
    Signature{0, "\x89HDF\r\n\x1a\n"sv, {"HDF5", to_hdf5}},
    Signature{0, "\x93NUMPY"sv, {"a NumPy array", to_array}},
    Signature{0, "\x1f\x8b"sv, {"gzip", unpack_first}},
    Signature{0, "BZh"sv, {"bzip2", unpack_first}},
    Signature{0, "\xfd\x37zXZ"sv, {"xz", unpack_first}},
    Signature{0, "\x28\xb5\x2f\xfd"sv, {"Zstandard", unpack_first}},
    Signature{0, "7z\xbc\xaf"sv, {"7-Zip", unpack_first}},
    Signature{0, "Rar!"sv, {"RAR", unpack_first}},
    Signature{257, "ustar"sv, {"tar", unpack_first}},
    Signature{
        0,
        "PK\x03\x04"sv,
        {"a zip archive (or .npz, .xlsx, .pt)", "unpack it, import an .npz as npy, or save a spreadsheet as CSV"}},
    Signature{0, "\x80\x02"sv, {"a Python pickle", "save its arrays with numpy.savez"}},
    Signature{0, "\x80\x03"sv, {"a Python pickle", "save its arrays with numpy.savez"}},
    Signature{0, "\x80\x04"sv, {"a Python pickle", "save its arrays with numpy.savez"}},
    Signature{0, "\x80\x05"sv, {"a Python pickle", "save its arrays with numpy.savez"}},
    Signature{0, "BM"sv, {"BMP", to_image}},
};

/// Whether every file that is like `later` is like `earlier`, too.
constexpr bool hides(const Signature& earlier, const Signature& later) {
  return earlier.at >= later.at && earlier.at - later.at <= later.bytes.size() &&
         later.bytes.substr(earlier.at - later.at).starts_with(earlier.bytes);
}

constexpr bool each_can_be_found() {
  for (std::size_t later = 0; later < signatures.size(); ++later)
    for (std::size_t earlier = 0; earlier < later; ++earlier)
      if (hides(signatures[earlier], signatures[later])) return false;
  return true;
}
static_assert(each_can_be_found());

}  // namespace

std::optional<KnownFormat> recognise_format(std::span<const std::byte> head) {
  const std::string_view text{reinterpret_cast<const char*>(head.data()), head.size()};
  for (const Signature& signature : signatures)
    if (text.size() > signature.at && text.substr(signature.at).starts_with(signature.bytes)) return signature.format;
  return std::nullopt;
}

}  // namespace lockstep::data
