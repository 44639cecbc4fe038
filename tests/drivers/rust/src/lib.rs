// SPDX-License-Identifier: Apache-2.0

//! A small ADBC driver, exported by adbc_ffi. Its tables are in memory, shared by the
//! connections of a database; without autocommit a connection works on a copy. Queries:
//!
//!     SELECT * FROM t      the rows that were ingested
//!     DELETE FROM t        removes them
//!     rows N, parts N      N batches of a row; N partitions, of which i has i rows
//!     endless, block       batches without an end; a call that only a cancel ends
//!     fails, fails N       an error at once; after N batches
//!     panic                a panic of Rust

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Condvar, Mutex};

use adbc_core::error::{Error, Result, Status};
use adbc_core::options::*;
use adbc_core::*;
use arrow_array::*;
use arrow_schema::*;

type Reader = Box<dyn RecordBatchReader + Send + 'static>;
type Tables = HashMap<String, (SchemaRef, Vec<RecordBatch>)>;

fn failure<T>(text: &str, status: Status) -> Result<T> {
    Err(Error::with_message_and_status(text, status))
}

fn absent<T>() -> Result<T> {
    failure("this driver lacks it", Status::NotImplemented)
}

fn reader(schema: SchemaRef, batches: Vec<RecordBatch>) -> Reader {
    Box::new(RecordBatchIterator::new(batches.into_iter().map(Ok), schema))
}

#[derive(Default)]
struct Cancelled {
    is: Mutex<bool>,
    changed: Condvar,
}

struct Handle(Arc<Cancelled>);

impl CancelHandle for Handle {
    fn try_cancel(&self) -> Result<()> {
        *self.0.is.lock().unwrap() = true;
        self.0.changed.notify_all();
        Ok(())
    }
}

// ---- options ----------------------------------------------------------------

trait Options {
    fn put(&mut self, _key: &str, _value: &str) -> Result<()> {
        absent()
    }
}

macro_rules! optionable {
    ($type:ty, $option:ty) => {
        impl Optionable for $type {
            type Option = $option;
            fn set_option(&mut self, key: $option, value: OptionValue) -> Result<()> {
                match value {
                    OptionValue::String(text) => self.put(key.as_ref(), &text),
                    _ => absent(),
                }
            }
            fn get_option_string(&self, _key: $option) -> Result<String> {
                failure("no such option", Status::NotFound)
            }
            fn get_option_bytes(&self, _key: $option) -> Result<Vec<u8>> {
                failure("no such option", Status::NotFound)
            }
            fn get_option_int(&self, _key: $option) -> Result<i64> {
                failure("no such option", Status::NotFound)
            }
            fn get_option_double(&self, _key: $option) -> Result<f64> {
                failure("no such option", Status::NotFound)
            }
        }
    };
}

// ---- driver and database ----------------------------------------------------

#[derive(Default)]
pub struct Toy;

#[derive(Default)]
pub struct Memory {
    tables: Arc<Mutex<Tables>>,
}

impl Driver for Toy {
    type DatabaseType = Memory;
    fn new_database(&mut self) -> Result<Memory> {
        Ok(Memory::default())
    }
    fn new_database_with_opts(
        &mut self,
        options: impl IntoIterator<Item = (OptionDatabase, OptionValue)>,
    ) -> Result<Memory> {
        let mut made = Memory::default();
        for (key, value) in options {
            made.set_option(key, value)?;
        }
        Ok(made)
    }
}

impl Options for Memory {}
optionable!(Memory, OptionDatabase);

impl Database for Memory {
    type ConnectionType = Link;
    fn new_connection(&self) -> Result<Link> {
        Ok(Link(Arc::new(Mutex::new(State {
            stored: self.tables.clone(),
            copy: None,
            autocommit: true,
        }))))
    }
    fn new_connection_with_opts(
        &self,
        options: impl IntoIterator<Item = (OptionConnection, OptionValue)>,
    ) -> Result<Link> {
        let mut made = self.new_connection()?;
        for (key, value) in options {
            made.set_option(key, value)?;
        }
        Ok(made)
    }
}

// ---- connections ------------------------------------------------------------

struct State {
    stored: Arc<Mutex<Tables>>,
    copy: Option<Tables>, // of a transaction that has written
    autocommit: bool,
}

impl State {
    fn table(&self, name: &str) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        let found = match &self.copy {
            Some(tables) => tables.get(name).cloned(),
            None => self.stored.lock().unwrap().get(name).cloned(),
        };
        found.map_or_else(|| failure(&format!("no table {name}"), Status::NotFound), Ok)
    }

    fn change(&mut self, work: impl FnOnce(&mut Tables) -> Result<i64>) -> Result<i64> {
        let mut tables = match self.copy.take() {
            Some(tables) => tables,
            None => self.stored.lock().unwrap().clone(),
        };
        let changed = work(&mut tables)?;
        match self.autocommit {
            true => *self.stored.lock().unwrap() = tables,
            false => self.copy = Some(tables),
        }
        Ok(changed)
    }
}

pub struct Link(Arc<Mutex<State>>);

impl Options for Link {
    fn put(&mut self, key: &str, value: &str) -> Result<()> {
        if key != constants::ADBC_CONNECTION_OPTION_AUTOCOMMIT {
            return absent();
        }
        if value == "true" {
            self.commit()?;
        }
        self.0.lock().unwrap().autocommit = value == "true";
        Ok(())
    }
}
optionable!(Link, OptionConnection);

impl Connection for Link {
    type StatementType = Query;
    fn new_statement(&mut self) -> Result<Query> {
        Ok(Query {
            state: self.0.clone(),
            sql: String::new(),
            bound: None,
            table: String::new(),
            mode: String::from("create"),
            cancelled: Default::default(),
        })
    }
    fn get_info(&self, _codes: Option<HashSet<InfoCode>>) -> Result<Reader> {
        absent()
    }
    fn get_objects(
        &self,
        _depth: ObjectDepth,
        _catalog: Option<&str>,
        _schema: Option<&str>,
        _table: Option<&str>,
        _type: Option<Vec<&str>>,
        _column: Option<&str>,
    ) -> Result<Reader> {
        absent()
    }
    fn get_table_schema(&self, _a: Option<&str>, _b: Option<&str>, table: &str) -> Result<Schema> {
        Ok(self.0.lock().unwrap().table(table)?.0.as_ref().clone())
    }
    fn get_table_types(&self) -> Result<Reader> {
        absent()
    }
    fn get_statistic_names(&self) -> Result<Reader> {
        absent()
    }
    fn get_statistics(
        &self,
        _catalog: Option<&str>,
        _schema: Option<&str>,
        _table: Option<&str>,
        _approximate: bool,
    ) -> Result<Reader> {
        absent()
    }
    fn commit(&mut self) -> Result<()> {
        let mut state = self.0.lock().unwrap();
        if let Some(tables) = state.copy.take() {
            *state.stored.lock().unwrap() = tables;
        }
        Ok(())
    }
    fn rollback(&mut self) -> Result<()> {
        self.0.lock().unwrap().copy = None;
        Ok(())
    }
    fn read_partition(&self, partition: impl AsRef<[u8]>) -> Result<Reader> {
        Ok(numbers(partition.as_ref()[0] as i64))
    }
}

// ---- statements -------------------------------------------------------------

pub struct Query {
    state: Arc<Mutex<State>>,
    sql: String,
    bound: Option<(SchemaRef, Vec<RecordBatch>)>,
    table: String, // of an ingest
    mode: String,
    cancelled: Arc<Cancelled>,
}

impl Options for Query {
    fn put(&mut self, key: &str, value: &str) -> Result<()> {
        match key {
            constants::ADBC_INGEST_OPTION_TARGET_TABLE => self.table = value.into(),
            constants::ADBC_INGEST_OPTION_MODE => {
                self.mode = value.trim_start_matches("adbc.ingest.mode.").into()
            }
            _ => return absent(),
        }
        Ok(())
    }
}
optionable!(Query, OptionStatement);

fn number_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]))
}

fn number(i: i64) -> RecordBatch {
    RecordBatch::try_new(number_schema(), vec![Arc::new(Int64Array::from(vec![i * 10]))]).unwrap()
}

fn numbers(count: i64) -> Reader {
    reader(number_schema(), (0..count).map(number).collect())
}

/// Batches that are made as they are read.
struct Made {
    at: i64,
    until: i64,
    word: String,
    cancelled: Arc<Cancelled>,
}

impl Iterator for Made {
    type Item = std::result::Result<RecordBatch, ArrowError>;
    fn next(&mut self) -> Option<Self::Item> {
        if *self.cancelled.is.lock().unwrap() {
            return Some(Err(ArrowError::ExternalError("it was cancelled".into())));
        }
        self.at += 1;
        if self.at <= self.until {
            return Some(Ok(number(self.at - 1)));
        }
        (self.word == "fails")
            .then(|| Err(ArrowError::ExternalError("connection reset: ü".into())))
    }
}

impl RecordBatchReader for Made {
    fn schema(&self) -> SchemaRef {
        number_schema()
    }
}

impl Query {
    fn wait(&self) -> Result<Reader> {
        let mut is = self.cancelled.is.lock().unwrap();
        while !*is {
            is = self.cancelled.changed.wait(is).unwrap();
        }
        failure("it was cancelled", Status::Cancelled)
    }

    fn ingest(&mut self) -> Result<i64> {
        let Some((schema, batches)) = self.bound.take() else {
            return failure("no rows are bound", Status::InvalidState);
        };
        let (name, mode) = (self.table.clone(), self.mode.clone());
        self.state.lock().unwrap().change(|tables| {
            match (tables.contains_key(&name), mode.as_str()) {
                (true, "create") => return failure("it is there", Status::AlreadyExists),
                (false, "append") => return failure("no such table", Status::NotFound),
                _ => (),
            }
            if mode == "replace" {
                tables.remove(&name);
            }
            let rows = batches.iter().map(|batch| batch.num_rows() as i64).sum();
            let table = tables.entry(name).or_insert((schema.clone(), vec![]));
            if table.0 != schema {
                return failure("its schema is another one", Status::InvalidArguments);
            }
            table.1.extend(batches);
            Ok(rows)
        })
    }

    fn delete(&mut self, name: &str) -> Result<i64> {
        self.state.lock().unwrap().change(|tables| match tables.get_mut(name) {
            Some(table) => Ok(table.1.drain(..).map(|batch| batch.num_rows() as i64).sum()),
            None => failure("no such table", Status::NotFound),
        })
    }
}

impl Statement for Query {
    fn bind(&mut self, batch: RecordBatch) -> Result<()> {
        self.bound = Some((batch.schema(), vec![batch]));
        Ok(())
    }
    fn bind_stream(&mut self, rows: Box<dyn RecordBatchReader + Send>) -> Result<()> {
        let schema = rows.schema();
        let batches = rows.collect::<std::result::Result<Vec<_>, _>>()?;
        self.bound = Some((schema, batches));
        Ok(())
    }
    fn execute(&mut self) -> Result<Reader> {
        let words: Vec<_> = self.sql.split_whitespace().collect();
        let count = |at: usize| words.get(at).and_then(|word| word.parse::<i64>().ok());
        let (word, until) = match words.as_slice() {
            ["SELECT", "*", "FROM", table] => {
                let (schema, batches) = self.state.lock().unwrap().table(table)?;
                return Ok(reader(schema, batches));
            }
            ["block"] => return self.wait(),
            ["panic"] => panic!("as it was told to"),
            ["endless"] => ("endless", i64::MAX),
            ["rows" | "fails", _] => (words[0], count(1).unwrap_or(0)),
            ["fails"] => return failure("division by zero", Status::Internal),
            _ => return failure("no such query", Status::InvalidArguments),
        };
        Ok(Box::new(Made {
            at: 0,
            until,
            word: word.into(),
            cancelled: self.cancelled.clone(),
        }))
    }
    fn execute_update(&mut self) -> Result<Option<i64>> {
        if !self.table.is_empty() {
            return self.ingest().map(Some);
        }
        let sql = self.sql.clone();
        match sql.strip_prefix("DELETE FROM ") {
            Some(table) => self.delete(table).map(Some),
            None => self.execute().map(|_| None),
        }
    }
    fn execute_schema(&mut self) -> Result<Schema> {
        absent()
    }
    fn execute_partitions(&mut self) -> Result<PartitionedResult> {
        let Some(count) = self.sql.strip_prefix("parts ").and_then(|n| n.parse::<u8>().ok()) else {
            return absent();
        };
        Ok(PartitionedResult {
            partitions: (1..=count).map(|i| vec![i]).collect(),
            schema: number_schema().as_ref().clone(),
            rows_affected: -1,
        })
    }
    fn get_parameter_schema(&self) -> Result<Schema> {
        absent()
    }
    fn prepare(&mut self) -> Result<()> {
        Ok(())
    }
    fn set_sql_query(&mut self, sql: impl AsRef<str>) -> Result<()> {
        self.sql = sql.as_ref().into();
        Ok(())
    }
    fn set_substrait_plan(&mut self, _plan: impl AsRef<[u8]>) -> Result<()> {
        absent()
    }
    fn get_cancel_handle(&self) -> Box<dyn CancelHandle> {
        Box::new(Handle(self.cancelled.clone()))
    }
}

adbc_ffi::export_driver!(AdbcDriverToyInit, Toy);
