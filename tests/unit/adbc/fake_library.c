/* SPDX-License-Identifier: Apache-2.0 */
/* The library libadbc_driver_fake.so: entry points of the fake driver, which is
 * in the program that loads it. */
#include <string.h>

#include "support/fake_driver.h"

AdbcStatusCode AdbcDriverFakeInit(int version, void *driver,
                                  struct AdbcError *error);
AdbcStatusCode fake_other_init(int version, void *driver,
                               struct AdbcError *error);
AdbcStatusCode fake_empty_init(int version, void *driver,
                               struct AdbcError *error);
AdbcStatusCode fake_garbage_init(int version, void *driver,
                                 struct AdbcError *error);

AdbcStatusCode AdbcDriverFakeInit(int version, void *driver,
                                  struct AdbcError *error)
{
    return fake_driver_init(version, driver, error);
}

AdbcStatusCode fake_other_init(int version, void *driver,
                               struct AdbcError *error)
{
    return fake_driver_init(version, driver, error);
}

AdbcStatusCode fake_empty_init(int version, void *driver,
                               struct AdbcError *error)
{
    (void)version;
    (void)driver;
    (void)error;
    return ADBC_STATUS_OK;
}

/* Fails, and leaves no function in the driver that could be called. */
AdbcStatusCode fake_garbage_init(int version, void *driver,
                                 struct AdbcError *error)
{
    (void)version;
    memset(driver, 0x5a, sizeof(struct AdbcDriver));
    error->vendor_code = ADBC_ERROR_VENDOR_CODE_PRIVATE_DATA;
    error->private_data = driver;
    return ADBC_STATUS_IO;
}
