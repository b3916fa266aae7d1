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

#include "data/format/source.hpp"
#include "data/write/shared_spools.hpp"

namespace lockstep::data {

struct ImportOptions {
  // images
  std::uint64_t resize = 0;   ///< shorter side; 0: as it is, then all must be of one size
  std::uint64_t crop = 0;     ///< centre crop to this square, after the resize
  bool keep_encoded = false;  ///< store the files' bytes, decode when loaded
  bool gray = false;
  bool keep_orientation = false;  ///< pixels as stored, not turned as EXIF says
  std::uint32_t white = 0;        ///< of images of 16 bits: the value that becomes 255; 0: not said
  std::size_t n_threads = 1;      ///< that decode, the caller among them
  // csv
  std::string x_columns{};  ///< "0-7,9" or names; all but y if empty
  std::string y_column{};   ///< name or number; the last if empty
  bool has_header = true;
  bool no_classes = false;  ///< also hdf5, npy: whole-number labels stay numbers
  // hdf5, npy
  std::string x_name{"x"};
  std::string y_name{"y"};
  std::string y_path{};  ///< npy: the file of the labels, where `path` is that of the inputs
  // hdf5
  bool allow_external_files = false;  ///< parts of it may be in files that it names
  bool allow_unwritten = false;       ///< what nobody has written is the fill value
  // csv, mnist, movielens, npy
  SharedSpools* spools = nullptr;  ///< of the ranks of a node; null: each makes its own
};

struct Importer {
  std::string_view name;     ///< the word
  std::string_view summary;  ///< one line for --help
  std::unique_ptr<Source> (*open)(const std::string& path, const ImportOptions& options);
  std::string_view layouts;  ///< lines: what PATH may be
  bool has_spools = false;   ///< what it spools, the ranks of a node can share
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
     "  FOLDER/train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-..., t10k-labels-...; each also with .gz\n"
     "  FOLDER/raw, FOLDER/MNIST/raw, FashionMNIST/raw or KMNIST/raw with these, as torchvision stores them\n"
     "  t10k becomes the split val. For KMNIST's .npz files use lockstep shard import npy\n",
     true},
    {"cifar10", "CIFAR-10, binary version (data_batch_*.bin, test_batch.bin) or the one for Python", open_cifar10,
     "  FOLDER or FOLDER/cifar-10-batches-bin with data_batch_*.bin, test_batch.bin, batches.meta.txt\n"
     "  FOLDER or FOLDER/cifar-10-batches-py with data_batch_*, test_batch, batches.meta, as torchvision stores them:\n"
     "  these are Python pickles; no code in them is executed\n"
     "  test_batch becomes the split val.\n"},
    {"cifar100", "CIFAR-100, binary version (train.bin, test.bin) or the one for Python; fine labels", open_cifar100,
     "  FOLDER or FOLDER/cifar-100-binary with train.bin, test.bin, fine_label_names.txt\n"
     "  FOLDER or FOLDER/cifar-100-python with train, test, meta, as torchvision stores them: these are Python "
     "pickles;\n"
     "  no code in them is executed\n"
     "  test becomes the split val.\n"},
    {"npy", "an .npz file with x and y, a folder with x.npy and y.npy, or two files; KMNIST's .npz pairs", open_npy,
     "  FILE.npz with arrays x and y (arr_0 and arr_1 if they have no names)\n"
     "  FOLDER with x.npy and y.npy\n"
     "  FILE FILE: inputs and labels, each an .npy file or an .npz file with one array\n"
     "  Several splits: x_train, y_train, x_val, ... or train/x, train/y, ...; a test without a val becomes val.\n"
     "  Images: uint8 of rows x columns or rows x columns x channels, or floats of channels x rows x columns.\n"
     "  Arrays and files named images (or imgs) and labels do not need --x-name: train_images and train_labels,\n"
     "  or kmnist-train-imgs.npz, kmnist-train-labels.npz, kmnist-test-... in a folder.\n",
     true},
    {"images", "a folder per class with JPEG, PNG or PPM files; train/, val/, test/ above; TinyImageNet", open_images,
     "  FOLDER/CLASS/*.jpg: .jpg, .jpeg, .png, .ppm and .pgm\n"
     "  FOLDER/train/CLASS/*.jpg, FOLDER/val/CLASS/*.jpg, FOLDER/test/..., as in ImageFolder\n"
     "  FOLDER/train/CLASS/images/*, FOLDER/val/images/* with val/val_annotations.txt, as in TinyImageNet\n"
     "  Classes are numbered in the order of their names.\n"},
    {"movielens", "ratings.csv (ml-latest), ratings.dat (ml-1m) or u.data (ml-100k)", open_movielens,
     "  FOLDER with ratings.csv, ratings.dat or u.data, or the file itself, plain or gzip\n", true},
    {"csv", "columns of numbers; labels may be words", open_csv,
     "  FILE of text in UTF-8, plain or gzip, with columns separated by commas, semicolons or tabs\n"
     "  Without --x-columns, a column without a name (or Unnamed: 0) that numbers the rows is left out,\n"
     "  and so is a first column called index that numbers them from 0.\n"
     "  Select columns with equal names by their numbers, from 0.\n",
     true},
    {"hdf5", "an HDF5 file with data sets x and y; also MATLAB 7.3 files", open_hdf5,
     "  FILE with data sets x and y, whose first dimension counts the samples\n"
     "  MATLAB files (save -v7.3) are read as MATLAB shows them.\n"
     "  Several splits: x_train, y_train, x_val, ... or /train/x, /train/y, ...; a test without a val becomes val.\n"
     "  Images: uint8 of rows x columns or rows x columns x channels, or floats of channels x rows x columns.\n"
     "  Data sets named images and labels do not need --x-name: train_images and train_labels.\n"},
}};

}  // namespace lockstep::data
