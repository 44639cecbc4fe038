// SPDX-License-Identifier: Apache-2.0

//! The stream on tokio: all rows, errors, cancels, and futures that are dropped.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_schema::ArrowError;
use uvarrow_tokio::{Error, Runtime, Stream, StreamExt};

const MANY: &str = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c \
                    WHERE n < 200000) SELECT n FROM c";
const ENDLESS: &str = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) \
                       SELECT n FROM c";

fn code(error: ArrowError) -> i32 {
    match error {
        ArrowError::ExternalError(error) => error.downcast::<Error>().unwrap().code,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn all_rows_come_in_order() {
    let runtime = Runtime::open().unwrap();
    let sum = runtime.run(async {
        let mut batches = runtime.pool("sqlite::memory:").unwrap().query(MANY).unwrap();
        let (mut last, mut count) = (0, 0);
        while let Some(batch) = batches.next().await {
            let batch = batch.unwrap();
            for n in batch.column(0).as_primitive::<Int64Type>().values() {
                assert_eq!(*n, last + 1);
                last = *n;
            }
            count += 1;
        }
        assert!(count > 10, "{count} batches");
        assert!(batches.next().await.is_none());
        last
    });
    assert_eq!(sum.await.unwrap(), 200000);
}

#[tokio::test]
async fn two_streams_share_the_thread() {
    let runtime = Runtime::open().unwrap();
    let pool = runtime.pool("sqlite::memory:").unwrap();
    let rows = |batches| async move {
        let mut batches: uvarrow_tokio::Batches = batches;
        let mut rows = 0;
        while let Some(batch) = batches.next().await {
            rows += batch.unwrap().num_rows();
        }
        rows
    };
    let (a, b) = (pool.query(MANY).unwrap(), pool.query(MANY).unwrap());
    let both = runtime.run(async { tokio::join!(rows(a), rows(b)) });
    assert_eq!(both.await.unwrap(), (200000, 200000));
}

#[tokio::test]
async fn an_error_comes_with_the_text_of_the_database() {
    let runtime = Runtime::open().unwrap();
    let error = runtime.run(async {
        let mut batches = runtime.pool("sqlite::memory:").unwrap().query("SELECT x").unwrap();
        let error = batches.next().await.unwrap().unwrap_err();
        assert!(batches.next().await.is_none());
        error
    });
    let error = error.await.unwrap();
    assert!(error.to_string().contains("no such column"), "{error}");
}

#[tokio::test]
async fn a_cancel_ends_the_stream() {
    let runtime = Runtime::open().unwrap();
    let end = runtime.run(async {
        let mut batches = runtime.pool("sqlite::memory:").unwrap().query(ENDLESS).unwrap();
        batches.next().await.unwrap().unwrap();
        batches.cancel();
        loop {
            if let Err(error) = batches.next().await.unwrap() {
                return code(error);
            }
        }
    });
    assert_eq!(end.await.unwrap(), libc::ECANCELED);
}

#[tokio::test]
async fn a_dropped_future_loses_no_batch() {
    let runtime = Runtime::open().unwrap();
    let last = runtime.run(async {
        let mut batches = runtime.pool("sqlite::memory:").unwrap().query(MANY).unwrap();
        let mut last = 0;
        loop {
            // polled once, and dropped if there is no batch
            let once = poll_fn(|cx| match Pin::new(&mut batches).poll_next(cx) {
                Poll::Ready(item) => Poll::Ready(Some(item)),
                Poll::Pending => Poll::Ready(None),
            });
            match once.await {
                None => tokio::task::yield_now().await,
                Some(None) => return last,
                Some(Some(batch)) => {
                    for n in batch.unwrap().column(0).as_primitive::<Int64Type>().values() {
                        assert_eq!(*n, last + 1);
                        last = *n;
                    }
                }
            }
        }
    });
    assert_eq!(last.await.unwrap(), 200000);
}

#[tokio::test]
async fn a_dropped_stream_ends_its_query() {
    let runtime = Runtime::open().unwrap();
    let first = runtime.run(async {
        let mut batches = runtime.pool("sqlite::memory:").unwrap().query(ENDLESS).unwrap();
        batches.next().await.unwrap().unwrap().num_rows()
    });
    assert!(first.await.unwrap() > 0);
    drop(runtime); // waits for the worker, which an endless query would keep
}
