// SPDX-License-Identifier: Apache-2.0

import com.sun.jna.Library;
import com.sun.jna.Memory;
import com.sun.jna.Native;
import com.sun.jna.Pointer;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.apache.arrow.c.ArrowArrayStream;
import org.apache.arrow.c.Data;
import org.apache.arrow.compression.CommonsCompressionFactory;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.compression.CompressionCodec;
import org.apache.arrow.vector.compression.CompressionUtil.CodecType;
import org.apache.arrow.vector.compression.NoCompressionCodec;
import org.apache.arrow.vector.dictionary.DictionaryProvider;
import org.apache.arrow.vector.ipc.ArrowFileReader;
import org.apache.arrow.vector.ipc.ArrowFileWriter;
import org.apache.arrow.vector.ipc.ArrowReader;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.arrow.vector.ipc.ArrowStreamWriter;
import org.apache.arrow.vector.ipc.ArrowWriter;
import org.apache.arrow.vector.ipc.JsonFileWriter;
import org.apache.arrow.vector.ipc.message.IpcOption;

/** arrow-java: Arrow IPC to the JSON of the integration tests, and to Arrow IPC. */
public class Peer {
    interface Convert {
        void run(BufferAllocator allocator, Path from, Path to) throws Exception;
    }

    static boolean isFile;
    static CodecType codec = CodecType.NO_COMPRESSION;

    public static void main(String[] words) throws Exception {
        isFile = words[2].equals("file");
        if (words.length > 3) {
            codec = switch (words[3]) {
                case "lz4" -> CodecType.LZ4_FRAME;
                case "zstd" -> CodecType.ZSTD;
                default -> CodecType.NO_COMPRESSION;
            };
        }
        String arrow = isFile ? ".arrow" : ".arrows";
        Path folder = Path.of(words[1]);
        switch (words[0]) {
            case "read" -> each(folder, arrow, ".json", Peer::toJson);
            case "pass" -> each(folder, arrow, ".passed" + arrow, Peer::pass);
            case "echo" -> each(folder, arrow, ".out" + arrow, Peer::again);
            default -> throw new IllegalArgumentException(words[0]);
        }
    }

    /** An error becomes NAME.error. */
    static void each(Path folder, String from, String to, Convert convert) throws Exception {
        List<Path> paths;
        try (Stream<Path> files = Files.list(folder)) {
            paths = files.filter(path -> path.toString().endsWith(from)).sorted().toList();
        }
        for (Path path : paths) {
            String file = path.getFileName().toString();
            String name = file.substring(0, file.length() - from.length());
            try (BufferAllocator allocator = new RootAllocator()) {
                convert.run(allocator, path, folder.resolve(name + to));
                settle(allocator);
            } catch (Throwable error) {
                Files.writeString(folder.resolve(name + ".error"), error.toString());
            }
        }
    }

    static ArrowReader reader(FileInputStream in, BufferAllocator allocator) {
        return isFile
                ? new ArrowFileReader(
                        in.getChannel(), allocator, CommonsCompressionFactory.INSTANCE)
                : new ArrowStreamReader(in, allocator, CommonsCompressionFactory.INSTANCE);
    }

    static void toJson(BufferAllocator allocator, Path from, Path to) throws Exception {
        try (FileInputStream in = new FileInputStream(from.toFile());
                ArrowReader reader = reader(in, allocator);
                JsonFileWriter writer =
                        new JsonFileWriter(to.toFile(), JsonFileWriter.config().pretty(false))) {
            VectorSchemaRoot root = reader.getVectorSchemaRoot();
            boolean more = reader.loadNextBatch(); // the dictionaries come with it
            writer.start(root.getSchema(), reader);
            for (; more; more = reader.loadNextBatch()) {
                writer.write(root);
            }
        }
    }

    static ArrowWriter writer(VectorSchemaRoot root, DictionaryProvider words, FileChannel out) {
        CompressionCodec.Factory factory = codec == CodecType.NO_COMPRESSION
                ? NoCompressionCodec.Factory.INSTANCE
                : CommonsCompressionFactory.INSTANCE;
        return isFile
                ? new ArrowFileWriter(root, words, out, null, IpcOption.DEFAULT, factory, codec)
                : new ArrowStreamWriter(root, words, out, IpcOption.DEFAULT, factory, codec);
    }

    static void write(ArrowReader reader, Path to) throws Exception {
        try (FileOutputStream out = new FileOutputStream(to.toFile())) {
            VectorSchemaRoot root = reader.getVectorSchemaRoot();
            boolean more = reader.loadNextBatch();
            try (ArrowWriter writer = writer(root, reader, out.getChannel())) {
                writer.start();
                for (; more; more = reader.loadNextBatch()) {
                    writer.writeBatch();
                }
                writer.end();
            }
        }
    }

    static void again(BufferAllocator allocator, Path from, Path to) throws Exception {
        try (FileInputStream in = new FileInputStream(from.toFile());
                ArrowReader reader = reader(in, allocator)) {
            write(reader, to);
        }
    }

    /** rows_module.c */
    interface Rows extends Library {
        Pointer rows_open();

        int rows_play(Pointer runtime, Pointer in, Pointer stages, Pointer out);
    }

    /** From Java through uvarrow, which removes offsets, to Java. */
    static void pass(BufferAllocator allocator, Path from, Path to) throws Exception {
        Rows rows = Native.load(System.getenv("UVA_ROWS_MODULE"), Rows.class);
        Memory stages = new Memory(48); // struct rows_stages
        stages.clear();
        stages.setLong(16, -1); // limit
        stages.setInt(40, 1); // flat
        try (FileInputStream in = new FileInputStream(from.toFile());
                ArrowArrayStream given = ArrowArrayStream.allocateNew(allocator);
                ArrowArrayStream taken = ArrowArrayStream.allocateNew(allocator)) {
            Data.exportArrayStream(allocator, reader(in, allocator), given);
            int code = rows.rows_play(rows.rows_open(), new Pointer(given.memoryAddress()),
                    stages, new Pointer(taken.memoryAddress()));
            if (code != 0) {
                throw new IllegalStateException("code " + code);
            }
            try (ArrowReader reader = Data.importArrayStream(allocator, taken)) {
                write(reader, to);
            }
        }
    }

    /** The stream that Java gave is released by a worker of uvarrow, soon. */
    static void settle(BufferAllocator allocator) throws InterruptedException {
        for (int i = 0; i < 10_000 && allocator.getAllocatedMemory() != 0; i++) {
            Thread.sleep(1);
        }
    }
}
