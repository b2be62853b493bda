// The constructors that callers built against AOTriton's headers import. They bear no version, and
// the callers' structs have 768 bytes (0.10, 0.11) or 832 (0.12 to 0.14), and 1040 (0.10, 0.11), 1232
// (0.12, 0.13) or 1240 (0.14): a constructor may fill only the bytes that all of them have. Zeros are
// null views, kUnknown, VarlenType::None in each layout. What lies beyond was never initialised by the
// constructors of the releases before 0.14 either; of 0.14 it holds varlen_bits, which are therefore
// read only together with lengths.
//
// The classes are declared anew, as bytes, because the header's constructors are inline and would
// fill the whole struct of today.
#include <aotriton/config.h>

#include <cstring>

namespace AOTRITON_NS::v3::flash {

struct AOTRITON_API attn_fwd_params {
  unsigned char common[768];
  attn_fwd_params();
};

struct AOTRITON_API attn_bwd_params {
  unsigned char common[1040];
  attn_bwd_params();
};

attn_fwd_params::attn_fwd_params() { memset(common, 0, sizeof(common)); }

attn_bwd_params::attn_bwd_params() { memset(common, 0, sizeof(common)); }

}  // namespace AOTRITON_NS::v3::flash
