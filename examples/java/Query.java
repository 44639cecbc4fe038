// SPDX-License-Identifier: Apache-2.0

import com.sun.jna.*;
import com.sun.jna.ptr.PointerByReference;
import java.util.concurrent.*;
import org.apache.arrow.c.*;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.ipc.ArrowReader;

/** Counts the rows of a query: Query sqlite:flights.db 'SELECT * FROM flights' */
public class Query {
    interface Uvarrow extends Library {
        int uva_runtime_open(Pointer loop, Pointer options, PointerByReference out, Pointer error);
        int uva_adbc_pool_new(Pointer rt, Pointer options, PointerByReference out, Pointer error);
        Pointer uva_stream_from_query(Pointer pool, Pointer query);
        int uva_stream_without_offsets(Pointer stream); // arrow-java ignores them
        int uva_stream_to_arrow_stream(Pointer stream, Pointer window, Pointer out, Pointer error);
        void uva_stream_cancel(Pointer stream, int code, String reason);
    }

    static final Uvarrow UVA = Native.load("uvarrow-adbc", Uvarrow.class);
    static final Memory ERROR = new Memory(1024); // struct uva_error: its text is at 16

    static void check(int code) {
        if (code != 0) throw new IllegalStateException(ERROR.getString(16, "UTF-8"));
    }
    /** A struct of 256 bytes, zeroes but for one pointer. */
    static Memory struct(int at, Pointer pointer) {
        Memory memory = new Memory(256);
        memory.clear();
        memory.setPointer(at, pointer);
        return memory;
    }
    static Memory text(String text) {
        Memory memory = new Memory(4 * text.length() + 1);
        memory.setString(0, text, "UTF-8");
        return memory;
    }

    public static void main(String[] words) throws Exception {
        PointerByReference rt = new PointerByReference(), pool = new PointerByReference();
        check(UVA.uva_runtime_open(null, null, rt, ERROR)); // with a thread of its own
        Memory key = text("uri"), uri = text(words[0]), sql = text(words[1]), pairs = struct(0, key);
        pairs.setPointer(8, uri);
        check(UVA.uva_adbc_pool_new(rt.getValue(), struct(16, pairs), pool, ERROR)); // its options
        Pointer stream = UVA.uva_stream_from_query(pool.getValue(), struct(0, sql));
        UVA.uva_stream_without_offsets(stream);
        CompletableFuture.delayedExecutor(10, TimeUnit.SECONDS) // then the database is told to stop
                .execute(() -> UVA.uva_stream_cancel(stream, 0, "too late"));
        try (RootAllocator allocator = new RootAllocator();
                ArrowArrayStream out = ArrowArrayStream.allocateNew(allocator)) {
            check(UVA.uva_stream_to_arrow_stream(stream, null, new Pointer(out.memoryAddress()), ERROR));
            long rows = 0;
            try (ArrowReader reader = Data.importArrayStream(allocator, out)) {
                while (reader.loadNextBatch()) rows += reader.getVectorSchemaRoot().getRowCount();
            }
            System.out.println(rows + " rows");
        }
    }
}
