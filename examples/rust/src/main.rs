// SPDX-License-Identifier: Apache-2.0

//! Prints the first batches of a query, as the program has time for them:
//!
//!     cargo run -- sqlite:flights.db 'SELECT * FROM flights'

use std::time::Duration;

use arrow_schema::ArrowError;
use uvarrow_tokio::{Runtime, StreamExt};

async fn show(runtime: &Runtime, uri: &str, sql: &str) -> Result<usize, ArrowError> {
    let mut batches = runtime.pool(uri)?.query(sql)?;
    let mut rows = 0;
    while let Some(batch) = batches.next().await {
        rows += batch?.num_rows();
        // The source waits meanwhile: only a window of batches is read ahead.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(rows)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ArrowError> {
    let words: Vec<String> = std::env::args().collect();
    let runtime = Runtime::open()?;
    // A time limit drops the stream, which cancels the query in the database.
    let limit = Duration::from_secs(10);
    let work = tokio::time::timeout(limit, show(&runtime, &words[1], &words[2]));
    match runtime.run(work).await? {
        Ok(Ok(rows)) => println!("{rows} rows"),
        Ok(Err(error)) => println!("{error}"),
        Err(_) => println!("too late"),
    }
    Ok(())
}
