// Every importer by its word on the command line.
// Invariant: a source validates its input when made (files, magic numbers, sizes) and throws core::Error (usage) naming
// file, place, expected and found; what can only be seen by reading all of it is found by read().
// Used by `lockstep shard import`; each importer is one file of this folder.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "data/shared_spools.hpp"
#include "data/source.hpp"

namespace lockstep::data {

struct ImportOptions {
  // images
  std::uint64_t resize = 0;   ///< shorter side; 0: as it is, then all must be of one size
  std::uint64_t crop = 0;     ///< centre crop to this square, after the resize
  bool keep_encoded = false;  ///< store the files' bytes, decode when loaded
  bool gray = false;
  std::size_t n_threads = 1;  ///< that decode, the caller among them
  // csv
  std::string x_columns{};  ///< "0-7,9" or names; all but y if empty
  std::string y_column{};   ///< name or number; the last if empty
  bool has_header = true;
  bool no_classes = false;  ///< also hdf5, npy: whole-number labels stay numbers
  // hdf5, npy
  std::string x_name{"x"};
  std::string y_name{"y"};
  std::string y_path{};  ///< npy: the file of the labels, where `path` is that of the inputs
  // csv, mnist, movielens, npy
  SharedSpools* spools = nullptr;  ///< of the ranks of a node; null: each makes its own
};

struct Importer {
  std::string_view name;     ///< the word
  std::string_view summary;  ///< one line for --help
  std::unique_ptr<Source> (*open)(const std::string& path, const ImportOptions& options);
  bool has_spools = false;  ///< what it spools, the ranks of a node can share
};

std::unique_ptr<Source> open_idx(const std::string& path, const ImportOptions& options);  // mnist
std::unique_ptr<Source> open_cifar10(const std::string& path, const ImportOptions& options);
std::unique_ptr<Source> open_cifar100(const std::string& path, const ImportOptions& options);
std::unique_ptr<Source> open_npy(const std::string& path, const ImportOptions& options);  // .npy pair or .npz
std::unique_ptr<Source> open_images(const std::string& path, const ImportOptions& options);
std::unique_ptr<Source> open_movielens(const std::string& path, const ImportOptions& options);
std::unique_ptr<Source> open_csv(const std::string& path, const ImportOptions& options);
std::unique_ptr<Source> open_hdf5(const std::string& path, const ImportOptions& options);

inline constexpr std::array<Importer, 8> importers{{
    {"mnist", "IDX files, plain or gzip: MNIST, Fashion-MNIST, KMNIST; any of the four files in a folder", open_idx,
     true},
    {"cifar10", "CIFAR-10 binary version: data_batch_*.bin, test_batch.bin", open_cifar10},
    {"cifar100", "CIFAR-100 binary version: train.bin, test.bin; fine labels", open_cifar100},
    {"npy", "an .npz file with x and y, or a folder with x.npy and y.npy", open_npy, true},
    {"images", "a folder per class with JPEG, PNG or PPM files; train/, val/, test/ above; TinyImageNet", open_images},
    {"movielens", "ratings.csv (ml-latest) or ratings.dat (ml-1m)", open_movielens, true},
    {"csv", "numbers in columns", open_csv, true},
    {"hdf5", "an HDF5 file with data sets x and y", open_hdf5},
}};

}  // namespace lockstep::data
