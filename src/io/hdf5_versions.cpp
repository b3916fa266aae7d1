#include <cstdlib>

#include "io/hdf5_library.hpp"

// The only place that knows the differences between versions of HDF5.

#if !H5_VERSION_GE(1, 10, 5)
#error "Lockstep needs HDF5 1.10.5 or newer: it asks where chunks lie in a file"
#endif

namespace lockstep::io {
namespace {

struct Visit {
  herr_t (*see)(const char* name, void* context);
  void* context;
  hid_t link_list;
};

template <class Info>
herr_t see_object(hid_t, const char* name, const Info* info, void* raw) {
  const auto* const visit = static_cast<const Visit*>(raw);
  return info->type == H5O_TYPE_DATASET ? visit->see(name, visit->context) : 0;
}

// Visits soft and external links, which H5Ovisit does not follow; skips those that lead nowhere.
herr_t see_link(hid_t group, const char* name, const H5L_info_t* info, void* raw) {
  if (info->type != H5L_TYPE_SOFT && info->type != H5L_TYPE_EXTERNAL) return 0;
  const Silence silence;
  const auto* const visit = static_cast<const Visit*>(raw);
  const hid_t object = H5Oopen(group, name, visit->link_list);
  if (object < 0) return 0;
  const bool is_dataset = H5Iget_type(object) == H5I_DATASET;
  H5Oclose(object);
  return is_dataset ? visit->see(name, visit->context) : 0;
}

herr_t visit_links(hid_t file, Visit& visit) { return H5Lvisit(file, H5_INDEX_NAME, H5_ITER_NATIVE, see_link, &visit); }

}  // namespace

#if H5_VERSION_GE(1, 12, 1) || (H5_VERSION_GE(1, 10, 7) && !H5_VERSION_GE(1, 12, 0))
herr_t turn_off_locks(hid_t access_list) { return H5Pset_file_locking(access_list, false, true); }
#else
herr_t turn_off_locks(hid_t) { return setenv("HDF5_USE_FILE_LOCKING", "FALSE", 0); }
#endif

#if H5_VERSION_GE(1, 12, 0)
herr_t visit_datasets(hid_t file, hid_t link_list, herr_t (*see)(const char* name, void* context), void* context) {
  Visit visit{see, context, link_list};
  const herr_t status = H5Ovisit3(file, H5_INDEX_NAME, H5_ITER_NATIVE, see_object<H5O_info2_t>, &visit, H5O_INFO_BASIC);
  return status < 0 ? status : visit_links(file, visit);
}
#else
herr_t visit_datasets(hid_t file, hid_t link_list, herr_t (*see)(const char* name, void* context), void* context) {
  Visit visit{see, context, link_list};
  const herr_t status = H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_NATIVE, see_object<H5O_info_t>, &visit, H5O_INFO_BASIC);
  return status < 0 ? status : visit_links(file, visit);
}
#endif

}  // namespace lockstep::io
