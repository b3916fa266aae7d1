#include "nn/host/dnnl_primitives.hpp"

#include <string_view>

namespace lockstep::nn::host {

bool is_reference(const dnnl::primitive_desc_base& described) {
  return std::string_view{described.impl_info_str()}.find("ref") != std::string_view::npos;
}

dnnl::primitive_attr make_attributes(bool is_added) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (!is_added) return attributes;
  dnnl::post_ops sum;
  sum.append_sum();
  attributes.set_post_ops(sum);
  return attributes;
}

}  // namespace lockstep::nn::host
