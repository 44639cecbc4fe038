/* SPDX-License-Identifier: Apache-2.0 */
/* Clauses that no case can decide, for each role, with the reason. They are
 * listed as skipped, so that the list covers the whole catalogue. */
#include "tck/cases.h"

#define STATIC    "it is decided when the header is compiled"
#define DEVICE    "it needs a device; the data here is on the CPU"
#define SANITIZER "only a sanitizer sees it: build the subject with one"
#define OUTSIDE   "it cannot be seen from outside"
#define READER    "it binds the reader of a stream, a role that is not tested"
#define PERMIT    "a permission: it cannot be broken"
#define DATA      "the data of the suite has no such part"
#define FAULT     "a failure of that kind cannot be brought about from outside"

#define UNDECIDABLE(name, reason)                                              \
    {                                                                          \
        name, NULL, 0, reason                                                  \
    }
#define TABLE(cases)                                                           \
    {                                                                          \
        cases, sizeof(cases) / sizeof(*(cases))                                \
    }

/* clang-format off: one case in two lines */
static const struct uva__tck_case PRODUCER[] = {
    UNDECIDABLE("required_AB01_guard_macros_keep_their_names", STATIC),
    UNDECIDABLE("required_AB02_the_device_type_is_a_typedef", STATIC),
    UNDECIDABLE("required_AB03_device_macros_have_their_values", STATIC),
    UNDECIDABLE("required_AB04_the_schema_has_its_layout", STATIC),
    UNDECIDABLE("required_AB05_the_array_has_its_layout", STATIC),
    UNDECIDABLE("required_AB06_the_device_array_has_its_layout", STATIC),
    UNDECIDABLE("required_AB07_the_device_stream_has_its_layout", STATIC),
    UNDECIDABLE("required_AB08_the_task_has_its_layout", STATIC),
    UNDECIDABLE("required_AB09_the_producer_has_its_layout", STATIC),
    UNDECIDABLE("required_AB10_the_handler_has_its_layout", STATIC),
    UNDECIDABLE("required_AB11_structs_have_their_sizes_on_32_bits", STATIC),
    UNDECIDABLE("recommended_AB12_padding_is_cleared", SANITIZER),
    UNDECIDABLE("required_AB13_request_takes_a_signed_number", STATIC),
    UNDECIDABLE("required_AB14_structs_never_change", OUTSIDE),
    UNDECIDABLE("required_AB16_nothing_is_thrown_across_a_callback", OUTSIDE),
    UNDECIDABLE("optional_AB18_no_arrow_library_is_needed", STATIC),
    UNDECIDABLE("required_AB19_nothing_is_assumed_but_the_layout", OUTSIDE),
    UNDECIDABLE("required_AB20_a_guarded_block_is_whole", STATIC),
    UNDECIDABLE("required_DA01_structs_are_in_cpu_memory", DEVICE),
    UNDECIDABLE("required_DA06_one_array_is_on_one_device", DEVICE),
    UNDECIDABLE("recommended_DA10_ext_dev_comes_with_documents", OUTSIDE),
    UNDECIDABLE("required_DA11_the_event_goes_with_the_array", DEVICE),
    UNDECIDABLE("optional_DA19_a_record_batch_is_a_struct_array", PERMIT),
    UNDECIDABLE("required_DA27_views_have_their_lengths_on_the_device", DATA),
    UNDECIDABLE("required_EV01_no_event_means_ready", DEVICE),
    UNDECIDABLE("required_EV03_writes_come_before_the_event", DEVICE),
    UNDECIDABLE("required_EV05_cuda_events_are_cudaEvent_t_pointers", DEVICE),
    UNDECIDABLE("required_EV06_opencl_events_are_cl_event_pointers", DEVICE),
    UNDECIDABLE("required_EV07_vulkan_events_are_VkEvent_pointers", DEVICE),
    UNDECIDABLE("required_EV08_metal_events_are_MTLEvent_pointers", DEVICE),
    UNDECIDABLE("recommended_EV09_vpi_webgpu_and_hexagon_have_no_event",
                DEVICE),
    UNDECIDABLE("required_EV10_rocm_events_are_hipEvent_t_pointers", DEVICE),
    UNDECIDABLE("recommended_EV11_ext_dev_events_are_documented", OUTSIDE),
    UNDECIDABLE("required_EV12_oneapi_events_are_sycl_event_pointers", DEVICE),
    UNDECIDABLE("required_EV13_the_event_lives_until_release", DEVICE),
    UNDECIDABLE("required_EV15_the_event_was_recorded", DEVICE),
    UNDECIDABLE("required_EV16_the_event_can_be_waited_for_on_its_device",
                DEVICE),
    UNDECIDABLE("optional_EV18_the_event_may_be_null", PERMIT),
    UNDECIDABLE("required_EV20_one_event_covers_the_tree", DEVICE),
    UNDECIDABLE("required_EV22_an_event_may_be_waited_for_often", DEVICE),
    UNDECIDABLE("required_EV23_release_works_in_any_device_context", DEVICE),
    UNDECIDABLE("required_AP10_a_request_that_fails_is_reported_by_on_error",
                FAULT),
    UNDECIDABLE("required_TH03_callbacks_are_ordered_between_threads",
                SANITIZER),
    UNDECIDABLE("required_TH14_callbacks_may_begin_inside_the_start", PERMIT),
    UNDECIDABLE("required_TH15_no_callback_in_signals_and_forked_children",
                OUTSIDE),
    UNDECIDABLE("required_MD08_order_and_duplicates_are_kept", DATA),
    UNDECIDABLE("required_MD10_extension_types_use_their_keys", DATA),
    UNDECIDABLE("required_MD12_the_encoder_refuses_what_is_too_large", OUTSIDE),
    UNDECIDABLE("required_LC15_strings_live_for_the_call", OUTSIDE),
    UNDECIDABLE("required_LC20_code_stays_mapped", OUTSIDE),
};

static const struct uva__tck_case HANDLER[] = {
    UNDECIDABLE("required_TH07_arrays_may_be_released_on_any_thread", PERMIT),
    UNDECIDABLE("optional_DA14_the_consumer_brings_the_struct", PERMIT),
    UNDECIDABLE("optional_DA28_the_consumer_may_refuse_types", PERMIT),
    UNDECIDABLE("required_EV02_the_event_is_waited_for", DEVICE),
    UNDECIDABLE("required_EV14_the_event_is_left_alone", DEVICE),
    UNDECIDABLE("required_EV17_reads_are_over_before_release", DEVICE),
    UNDECIDABLE("required_EV19_pinned_memory_needs_a_wait_of_the_host", DEVICE),
    UNDECIDABLE("required_EV21_the_wait_comes_before_the_parents_release",
                DEVICE),
    UNDECIDABLE("required_EV22_an_event_may_be_waited_for_often", DEVICE),
    UNDECIDABLE("required_AH28_the_handler_stays_until_release", SANITIZER),
    UNDECIDABLE("required_AH29_one_handler_has_one_producer", OUTSIDE),
    UNDECIDABLE("required_AH31_a_consumer_that_wants_data_requests_it", PERMIT),
    UNDECIDABLE("optional_TH04_cancel_may_come_from_any_thread", PERMIT),
    UNDECIDABLE("required_TH15_no_callback_in_signals_and_forked_children",
                OUTSIDE),
    UNDECIDABLE("required_MD08_order_and_duplicates_are_kept", OUTSIDE),
    UNDECIDABLE("required_MD11_metadata_lives_by_its_place", OUTSIDE),
    UNDECIDABLE("required_LC23_the_event_is_not_used_behind_release", DEVICE),
    UNDECIDABLE("recommended_ER05_a_failed_extraction_is_noticed_twice",
                OUTSIDE),
};

static const struct uva__tck_case STREAM[] = {
    UNDECIDABLE("required_DA01_structs_are_in_cpu_memory", DEVICE),
    UNDECIDABLE("required_DA04_device_id_names_the_device", DEVICE),
    UNDECIDABLE("required_DA06_one_array_is_on_one_device", DEVICE),
    UNDECIDABLE("required_EV01_no_event_means_ready", DEVICE),
    UNDECIDABLE("required_EV13_the_event_lives_until_release", DEVICE),
    UNDECIDABLE("required_DS04_device_id_is_read_for_each_batch", READER),
    UNDECIDABLE("required_DS06_nothing_is_called_behind_release", READER),
    UNDECIDABLE("required_DS08_batches_can_be_read_from_the_device", DEVICE),
    UNDECIDABLE("required_DS10_the_text_is_asked_for_behind_a_failure", READER),
    UNDECIDABLE("required_DS12_the_text_is_copied", READER),
    UNDECIDABLE("required_DS14_the_stream_is_released_once", READER),
    UNDECIDABLE("required_DS16_calls_come_one_at_a_time", READER),
    UNDECIDABLE("required_DS17_private_data_is_left_alone", READER),
    UNDECIDABLE("required_DS20_the_schema_is_in_cpu_memory", DEVICE),
    UNDECIDABLE("optional_DS22_the_stream_may_lie_anywhere", PERMIT),
    UNDECIDABLE("required_TH13_one_call_at_a_time", READER),
};

/* clang-format on */

const struct uva__tck_table uva__producer_undecidable = TABLE(PRODUCER);
const struct uva__tck_table uva__handler_undecidable = TABLE(HANDLER);
const struct uva__tck_table uva__stream_undecidable = TABLE(STREAM);
